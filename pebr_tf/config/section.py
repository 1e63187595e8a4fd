"""A section of the configuration: a frozen dataclass of settings and of further sections."""

import dataclasses
import difflib
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypeVar, get_type_hints

from typing_extensions import dataclass_transform

from pebr_tf.config.error import ConfigError, shown
from pebr_tf.config.setting import METADATA_KEY, Setting, accept

AnySection = TypeVar("AnySection", bound="Section")


@dataclasses.dataclass(frozen=True)
class Key:
    """One field of a section: its name, its type, and its documentation and constraint."""

    name: str
    hint: Any
    rule: Setting

    @property
    def is_section(self) -> bool:
        return isinstance(self.hint, type) and issubclass(self.hint, Section)

    def accept(self, value: object) -> Any:
        """`value` as this key's type, or a ConfigError that starts at this key."""
        try:
            if not self.is_section:
                return accept(self.hint, self.rule, value)
            if isinstance(value, self.hint):
                return value
            # A section whose every line is commented out reads as null, and means the defaults.
            return self.hint.from_mapping({} if value is None else value)
        except ConfigError as error:
            raise error.inside(self.name) from None


@dataclass_transform(frozen_default=True)
class Section:
    """Base of the sections. A subclass is a frozen dataclass, checked however it is made."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(frozen=True)(cls)

    def __post_init__(self) -> None:
        for key in keys(type(self)):
            object.__setattr__(self, key.name, key.accept(getattr(self, key.name)))
        self.check()

    def check(self) -> None:
        """Rejects settings that are each valid but contradict each other."""

    def require(
        self, holds: bool, path: str, requirement: str, received: str | None = None
    ) -> None:
        """Raises a ConfigError about the key at `path`, with its value, unless `holds`."""
        if not holds:
            raise ConfigError(path, requirement, received or shown(self.value_at(path)))

    def value_at(self, path: str) -> Any:
        """The value at a dotted path below this section."""
        return functools.reduce(getattr, path.split("."), self)

    @classmethod
    def from_mapping(cls: type[AnySection], mapping: Mapping[Any, Any]) -> AnySection:
        """The section that `mapping` describes; keys that it lacks keep their defaults.

        Raises:
          ConfigError: The first unknown key or rejected value in the order of `mapping`, else the
            first contradiction.
        """
        if not isinstance(mapping, Mapping):
            raise ConfigError("", "be a mapping of settings", shown(mapping))
        known = {key.name: key for key in keys(cls)}
        values = {}
        for name, value in mapping.items():
            if name not in known:
                raise _unknown_key(cls, name, value)
            values[name] = known[name].accept(value)
        return cls(**values)

    def to_mapping(self) -> dict[str, Any]:
        """Plain dicts, lists and scalars, in the order of definition."""
        mapping: dict[str, Any] = {}
        for key in keys(type(self)):
            value = getattr(self, key.name)
            if isinstance(value, Section):
                value = value.to_mapping()
            mapping[key.name] = list(value) if isinstance(value, tuple) else value
        return mapping

    def fingerprint(self) -> str:
        """SHA-256 over every key and value: equal sections give equal digests, in any process."""
        canonical = json.dumps(self.to_mapping(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()


def keys(section: type[Any]) -> tuple[Key, ...]:
    """The fields of a section, in the order of definition."""
    hints = get_type_hints(section)
    return tuple(
        Key(field.name, hints[field.name], _rule(field, hints[field.name]))
        for field in dataclasses.fields(section)
    )


def leaves(section: type[Section]) -> Iterator[tuple[str, Key]]:
    """Every key below `section` that holds a value, with its dotted path."""
    for key in keys(section):
        if key.is_section:
            for path, leaf in leaves(key.hint):
                yield f"{key.name}.{path}", leaf
        else:
            yield key.name, key


def _rule(field: "dataclasses.Field[Any]", hint: Any) -> Setting:
    # A section documents itself once, in the first line of its docstring.
    return field.metadata.get(METADATA_KEY) or Setting(hint.__doc__.splitlines()[0])


def _unknown_key(section: type[Section], name: object, value: object) -> ConfigError:
    text = name if isinstance(name, str) else shown(name)
    names = [key.name for key in keys(section)]
    # A key that belongs one level down is told where; else the nearest spelling is offered.
    misplaced = [path for path, key in leaves(section) if key.name == text]
    near = difflib.get_close_matches(text, names, n=1)
    hints = misplaced or near
    hint = f"did you mean {hints[0]}?" if hints else ", ".join(names)
    return ConfigError(text, f"be a known key ({hint})", shown(value))
