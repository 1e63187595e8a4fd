"""YAML in and out: a strict reader, and a writer that explains every key beside its value.

The reader follows the core schema of YAML 1.2, where PyYAML follows 1.1: `1e-3` is a number, `010`
is ten, and `no`, `12:30` and `2024-01-01` are strings.
"""

import contextlib
import math
import re
from collections.abc import Callable
from typing import Any

import yaml

from pebr_tf.config.error import ConfigError, shown
from pebr_tf.config.section import Key, Section, keys
from pebr_tf.config.setting import remark

_TAG = "tag:yaml.org,2002:"
# Type -> the texts that it has, and the value of such a text.
_SCALARS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "null": ("|~|null|Null|NULL", lambda text: None),
    "bool": ("true|True|TRUE|false|False|FALSE", lambda text: text.lower() == "true"),
    "int": (r"[-+]?[0-9][0-9_]*", int),
    "float": (r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", float),
}
_HEADER = "# Settings of pEBR-TF. A key that is left out has its default."
# Readers of YAML 1.1 take these for booleans, so they are quoted on the way out.
_QUOTED_WORDS = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# Comments are aligned beside values up to this column; a longer value does not move all others.
_MAX_COLUMN = 44


class _Loader(yaml.SafeLoader):
    """Core schema only: no dates, no base 60, no tags beyond it."""


# Replaced, because SafeLoader's own resolvers and constructors must not apply.
_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    _TAG + "seq": yaml.SafeLoader.construct_yaml_seq,
    _TAG + "map": yaml.SafeLoader.construct_yaml_map,
    _TAG + "str": yaml.SafeLoader.construct_yaml_str,
    None: yaml.SafeLoader.construct_undefined,
}


def _add_scalar(name: str, pattern: str, convert: Callable[[str], Any]) -> None:
    texts = re.compile(rf"(?:{pattern})\Z")

    def construct(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        text = str(loader.construct_scalar(node))
        # An explicit tag (`!!int abc`) has any text, and Python limits the digits of an integer.
        with contextlib.suppress(ValueError):
            if texts.match(text):
                return convert(text)
        raise yaml.constructor.ConstructorError(
            None, None, f"expected a valid {name}", node.start_mark
        )

    _Loader.add_implicit_resolver(_TAG + name, texts, None)
    _Loader.add_constructor(_TAG + name, construct)


for _name, (_pattern, _convert) in _SCALARS.items():
    _add_scalar(_name, _pattern, _convert)


def parse(text: str) -> dict[Any, Any]:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError("", "hold a mapping of settings", "an empty file")
        _reject_repeated_keys(node, "", set())
        document = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise ConfigError("", "be valid YAML", f"{error.problem}{where}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ConfigError(
            "", "be valid YAML", f"character {ord(text[error.position]):#04x} in line {line}"
        ) from None
    except RecursionError:
        raise ConfigError("", "be valid YAML", "too many levels") from None
    if not isinstance(document, dict):
        raise ConfigError("", "hold a mapping of settings", shown(document))
    return document


def _reject_repeated_keys(node: yaml.Node, path: str, seen: set[int]) -> None:
    # An anchor may refer to a node that holds it.
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, entry in enumerate(node.value):
            _reject_repeated_keys(entry, f"{path}[{position}]", seen)
    if not isinstance(node, yaml.MappingNode):
        return
    names = set()
    for name_node, value_node in node.value:
        name = str(name_node.value)
        key = f"{path}.{name}" if path else name
        if name in names:
            line = name_node.start_mark.line + 1
            raise ConfigError(key, "appear once", f"a second one in line {line}")
        names.add(name)
        _reject_repeated_keys(value_node, key, seen)


def render(section: Section, comments: bool) -> str:
    """The YAML of a whole configuration, in the order of definition."""
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
        if key in entries:
            comment = f"{entries[key]:<{column}}  # {_comment(key)}"
            lines.append(comment if comments else entries[key])
            continue
        lines += ["", f"{indent}# {key.rule.doc}"] * comments + [f"{indent}{key.name}:"]
        lines += _lines(getattr(section, key.name), indent + "  ", comments)
    return lines


def _comment(key: Key) -> str:
    constraint = remark(key.hint, key.rule)
    return f"{key.rule.doc} [{constraint}]" if constraint else key.rule.doc


def _scalar(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_scalar, value))}]"
    if value is None or isinstance(value, bool):
        return shown(value)
    if isinstance(value, float):
        # With a point, readers of YAML 1.1 see a number in `1.0e-05` as well.
        text = repr(value)
        return text.replace("e", ".0e") if "." not in text else text
    if isinstance(value, int) or (_PLAIN.fullmatch(value) and value.lower() not in _QUOTED_WORDS):
        return str(value)
    quoted: str = yaml.safe_dump(value, default_style='"', width=math.inf, allow_unicode=True)
    return quoted.strip()
