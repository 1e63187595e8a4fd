"""The files of a click log or a catalogue on this machine, found without TFX."""

import glob
import re
from pathlib import Path

from pebr_tf.data.tables import Source
from pebr_tf.errors import UserError
from pebr_tf.files import is_remote

# Prefixes of files of Hadoop and of editors, which hold no data.
IGNORED = ("_", ".")
# Places of a span in a pattern, such as {SPAN}, {SPAN:4} or {YYYY}.
SPAN = re.compile(r"\{(SPAN|VERSION|YYYY|MM|DD)(:\d+)?\}")


def local_sources(key: str, pattern: str, format: str = "auto") -> list[Source]:
    """The files of a pattern, sorted; of one with spans, the files of all spans.

    A pattern that is not local has none here.
    """
    if is_remote(pattern):
        return []
    whole = Path(pattern)
    names = [pattern] if whole.is_file() else sorted(glob.glob(SPAN.sub("*", pattern)))
    paths = [Path(name) for name in names if not Path(name).name.startswith(IGNORED)]
    sources = [Source.local(path, format) for path in paths if path.is_file()]
    if not sources:
        raise no_file(key, pattern, whole.is_dir())
    return sources


def no_file(key: str, pattern: str, is_folder: bool) -> UserError:
    found = "a folder" if is_folder else "no such file"
    return UserError(f"{key} must name a file, or files by a glob. Received: {pattern}: {found}.")
