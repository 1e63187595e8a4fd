"""YAML in: one mapping, strict where PyYAML guesses.

Plain scalars follow the core schema of YAML 1.2, where PyYAML follows 1.1: `1e-3` is a number,
`010` is ten, and `no`, `12:30` and `2024-01-01` are strings.
"""

import re
from typing import Any

import yaml

from pebr_tf.config.error import ConfigError, shown

_TAG = "tag:yaml.org,2002:"
_NULLS = ("", "~", "null", "Null", "NULL")
_BOOLEANS = {
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}


class _Loader(yaml.SafeLoader):
    """Core schema only: no dates, no base 60, no tags beyond it."""


# Assigned, not added to: what a SafeLoader knows by inheritance is what must go.
_Loader.yaml_implicit_resolvers = {}
_Loader.yaml_constructors = {
    _TAG + "seq": yaml.SafeLoader.construct_yaml_seq,
    _TAG + "map": yaml.SafeLoader.construct_yaml_map,
    _TAG + "str": yaml.SafeLoader.construct_yaml_str,
    None: yaml.SafeLoader.construct_undefined,
}


def _add_scalar(name: str, pattern: str, first: str | None, convert: Any) -> None:
    def construct(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Any:
        text = loader.construct_scalar(node)
        try:
            return convert(text)
        except (KeyError, ValueError):
            # An explicit tag (`!!int abc`) or more digits than Python converts.
            raise yaml.constructor.ConstructorError(
                None, None, f"expected a valid {name}", node.start_mark
            ) from None

    starts = list(first) if first is not None else None
    _Loader.add_implicit_resolver(_TAG + name, re.compile(rf"(?:{pattern})\Z"), starts)
    _Loader.add_constructor(_TAG + name, construct)


_add_scalar(
    "null", "|".join(map(re.escape, _NULLS)), None, lambda text: dict.fromkeys(_NULLS)[text]
)
_add_scalar("bool", "|".join(_BOOLEANS), "tTfF", _BOOLEANS.__getitem__)
_add_scalar("int", r"[-+]?[0-9][0-9_]*", "-+0123456789", int)
_add_scalar(
    "float",
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
    "-+.0123456789",
    float,
)


def parse(text: str) -> dict[Any, Any]:
    """The mapping that a YAML document holds.

    Raises:
      ConfigError: Bad syntax, a key given twice, no mapping, nothing at all.
    """
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            raise ConfigError("", "hold a mapping of settings", "an empty file")
        _refuse_repeated_keys(node, "", set())
        document = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise ConfigError("", "be valid YAML", f"{error.problem}{_place(error)}") from None
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


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return f" in line {mark.line + 1}, column {mark.column + 1}" if mark else ""


def _refuse_repeated_keys(node: yaml.Node, path: str, seen: set[int]) -> None:
    # An anchor may refer to a node that holds it.
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for position, entry in enumerate(node.value):
            _refuse_repeated_keys(entry, f"{path}[{position}]", seen)
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
        _refuse_repeated_keys(value_node, key, seen)
