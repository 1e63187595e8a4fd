"""The error of the configuration: which key, what it must be, and what it received."""

import re
import reprlib

from pebr_tf.errors import UserError

# In an address. No setting takes one there, but a user may try.
_PASSWORD = re.compile(r"(://[^\s:@/]*:)\S*@")


class ConfigError(UserError, ValueError):
    """One sentence: `FILE: KEY must REQUIREMENT. Received: VALUE.`

    Attributes:
      key: Dotted path of the setting; empty if the whole configuration is meant.
      requirement: The text after "must".
    """

    def __init__(self, key: str, requirement: str, received: str, source: str = "") -> None:
        # All four go to `args`: an exception is unpickled by calling its class with them.
        super().__init__(key, requirement, received, source)
        self.key, self.requirement, self.received, self.source = self.args

    def __str__(self) -> str:
        subject = ": ".join(part for part in (self.source, self.key) if part)
        return (
            f"{subject or 'The configuration'} must {self.requirement}. Received: {self.received}."
        )

    def inside(self, section: str) -> "ConfigError":
        """The same error, seen from the section that holds the one it was raised in."""
        dot = "." if self.key and not self.key.startswith("[") else ""
        return ConfigError(f"{section}{dot}{self.key}", self.requirement, self.received)

    def in_file(self, source: str) -> "ConfigError":
        """The same error, with the file it was found in."""
        return ConfigError(self.key, self.requirement, self.received, source)


class _YamlRepr(reprlib.Repr):
    """Short even for a huge or self-containing value, and in the words of a YAML file."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel, self.maxstring, self.maxother = 2, 60, 60

    def repr_str(self, value: str, level: int) -> str:
        return super().repr_str(_PASSWORD.sub(r"\1***@", value), level)

    def repr_bool(self, value: bool, level: int) -> str:
        return "true" if value else "false"

    def repr_tuple(self, value: tuple[object, ...], level: int) -> str:
        return self.repr_list(list(value), level)

    def repr_NoneType(self, value: None, level: int) -> str:
        return "null"


_yaml_repr = _YamlRepr()


def shown(value: object) -> str:
    """`value` as an error prints it."""
    return _yaml_repr.repr(value)
