"""YAML out: every key in the order of definition, explained beside its value."""

import math
import re
from typing import Any

import yaml

from pebr_tf.config.section import Key, Section, keys
from pebr_tf.config.setting import remark

_HEADER = "# Settings of pEBR-TF. Every key may be left out: it then has its default."
# Readers of YAML 1.1 take these for booleans, so they are quoted on the way out.
_QUOTED_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# A comment moves right of values up to this width; one long value does not push all others away.
_MAX_COLUMN = 44


def render(section: Section, comments: bool) -> str:
    """The YAML of a whole configuration."""
    return "\n".join([_HEADER] * comments + _lines(section, "", comments)) + "\n"


def _lines(section: Section, indent: str, comments: bool) -> list[str]:
    entries = {
        key: f"{indent}{key.name}: {_scalar(getattr(section, key.name))}"
        for key in keys(type(section))
        if not key.is_section
    }
    column = max((len(text) for text in entries.values() if len(text) <= _MAX_COLUMN), default=0)
    lines = []
    for key in keys(type(section)):
        if not key.is_section:
            lines.append(
                f"{entries[key]:<{column}}  # {_comment(key)}" if comments else entries[key]
            )
            continue
        if comments:
            lines += ["", f"{indent}# {key.rule.doc}"]
        lines.append(f"{indent}{key.name}:")
        lines += _lines(getattr(section, key.name), indent + "  ", comments)
    return lines


def _comment(key: Key) -> str:
    constraint = remark(key.hint, key.rule)
    return f"{key.rule.doc} [{constraint}]" if constraint else key.rule.doc


def _scalar(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, float):
        # With a point, readers of YAML 1.1 see a number in `1.0e-05` as well.
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    if isinstance(value, int):
        return str(value)
    if _PLAIN.fullmatch(value) and value.lower() not in _QUOTED_WORDS:
        return str(value)
    quoted: str = yaml.safe_dump(value, default_style='"', width=math.inf, allow_unicode=True)
    return quoted.strip()
