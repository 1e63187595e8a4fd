"""How the two sets of versions differ where code has to know; CONTRIBUTING.md describes the sets.

No other module asks for the version of a library or of Python.
"""

import contextlib
import os
import re
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from pebr_tf.errors import UserError

_OP = "scann.scann_ops.py.scann_ops"
IS_MODERN = sys.version_info >= (3, 11)


# What absl prints below an error in a program that does not set it up.
_CHATTER = re.compile(rb"(?m)^(WARNING: All log messages before absl::|[IW]\d{4} \d\d:).*\n")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drops information and warnings of C++ code that does not obey TF_CPP_MIN_LOG_LEVEL.

    All else that is written to stderr meanwhile comes afterwards; everything if an error is raised.
    """
    if not IS_MODERN or os.environ.get("TF_CPP_MIN_LOG_LEVEL") != "3":
        yield
        return
    import tempfile

    dropped = _CHATTER
    with tempfile.TemporaryFile() as printed:
        sys.stderr.flush()
        stderr = os.dup(2)
        os.dup2(printed.fileno(), 2)
        try:
            yield
        except BaseException:
            dropped = re.compile(rb"(?!)")
            raise
        finally:
            sys.stderr.flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            printed.seek(0)
            os.write(2, dropped.sub(b"", printed.read()))


class _QuietLoader(SourceFileLoader):
    """Imports TensorFlow, which prints while its libraries are loaded."""

    def exec_module(self, module: ModuleType) -> None:
        with quiet():
            super().exec_module(module)


class _Imports:
    """Makes imports that differ between the sets work in both; costs nothing until then."""

    @staticmethod
    def find_spec(name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if name == _OP:
            _require_tensorflow_of_scann()
        if name == "tensorflow" and IS_MODERN:
            spec = PathFinder.find_spec(name, path)
            if spec is not None and spec.origin is not None:
                spec.loader = _QuietLoader(name, spec.origin)
            return spec
        return None


def _require_tensorflow_of_scann() -> None:
    """Makes ScaNN's TensorFlow op a module that is missing where TensorFlow cannot load it.

    It is built for one minor version, which ScaNN's metadata name. Its failure would end
    `import scann` and `import tensorflow_recommenders`; both do without a module that is missing.
    """
    from importlib.metadata import requires, version

    found = version("tensorflow")
    (needed,) = re.findall(r"tensorflow ?~=(\d+\.\d+)\.", " ".join(requires("scann") or ()))
    if not found.startswith(f"{needed}."):
        # Without `name`, which would make it an ImportError that ScaNN does not expect.
        raise ModuleNotFoundError(
            f"ScaNN's TensorFlow op requires TensorFlow {needed}. Received: {found}."
        )


def guard_imports() -> None:
    """Lets the same imports work in both sets, and be quiet in both."""
    if _Imports not in sys.meta_path:
        sys.meta_path.insert(0, _Imports)


def scann_op() -> Any:
    """ScaNN's TensorFlow op, which set native has."""
    try:
        from scann.scann_ops.py import scann_ops
    except ModuleNotFoundError as error:
        raise UserError(str(error)) from None
    return scann_ops


def installed(packages: Iterable[str]) -> dict[str, str]:
    """The version of each package."""
    from importlib.metadata import version

    return {package: version(package) for package in packages}


def unknown_fields(message: Any) -> Iterable[Any]:
    """The fields of a protobuf message that its type does not have, each with `field_number`."""
    try:
        from google.protobuf.unknown_fields import UnknownFieldSet
    except ModuleNotFoundError:
        return message.UnknownFields()  # protobuf 3
    return UnknownFieldSet(message)
