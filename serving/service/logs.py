"""Logs of the service on standard error: JSON lines, or readable lines on a terminal.

There are two kinds of lines: `request`, one per request, and events (start, ready, drain, ...).
Query texts are not logged unless `serving.log_queries` is true.
"""

import contextlib
import logging
import random
import re
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timezone
from logging.handlers import QueueHandler, QueueListener
from queue import SimpleQueue
from typing import Any, TextIO

import orjson

from pebr_tf import environment
from serving.retrieval import STAGES, RetrievalRequest, RetrievalResponse

# Modules of the service log below it: the message is the event, `extra` its fields.
LOGGER = logging.getLogger("pebr")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
INTERNAL_ERROR = "the server failed; its log has the reason under the request id."
# Statuses that are the server's problem rather than the caller's.
_LEVELS = {
    "INTERNAL": logging.ERROR,
    "UNAVAILABLE": logging.WARNING,
    "RESOURCE_EXHAUSTED": logging.WARNING,
    "DEADLINE_EXCEEDED": logging.WARNING,
}
FLUSH_SECONDS = 1.0
Content = dict[str, Any]
# Attributes that every record of the logging module has.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Writes one line about the service itself; thread-safe."""
    LOGGER.log(level, name, extra=fields)


def new_request_id(given: str | None) -> str:
    """Returns the caller's request id if it is safe to print, else a new one."""
    if given is not None and REQUEST_ID.fullmatch(given):
        return given
    return f"{random.getrandbits(128):032x}"


@dataclass
class RequestRecord:
    """The log line of one request, filled in while the request is answered.

    Attributes:
      method: Name of the method, or verb and path.
      begun: `time.perf_counter()` at the arrival of the request.
      status: Name of a gRPC status, for both APIs.
      fields: Counts, stages, release, and the invalid field or the message of an error.
    """

    api: str
    method: str
    request_id: str
    begun: float = field(default_factory=time.perf_counter)
    status: str = "OK"
    fields: Content = field(default_factory=dict)

    def seconds(self) -> float:
        return time.perf_counter() - self.begun

    def add_request(self, request: RetrievalRequest, with_text: bool) -> None:
        """Adds the number of queries, and their texts if `with_text`."""
        self.fields["queries"] = len(request.queries)
        if with_text:
            self.fields["texts"] = request.queries

    def add_response(self, response: RetrievalResponse) -> None:
        self.fields["items"] = len(response.items.scores)
        self.fields["release"] = response.release
        self.fields["stages"] = {
            name: _milliseconds(getattr(response.seconds, name)) for name in STAGES
        }

    def add_error(self, error: Exception, status: str) -> None:
        """Adds why the request failed; for an invalid field its name only, not its value."""
        self.status = status
        if (name := getattr(error, "field", None)) is not None:
            self.fields["field"] = name[:100]
        elif status != "INTERNAL":
            self.fields["error"] = str(error)

    def log_exception(self) -> None:
        """Writes the exception being handled, with its traceback, at once."""
        fields = {"request_id": self.request_id, "method": self.method}
        LOGGER.error("failed", extra=fields, exc_info=True)

    def write(self) -> None:
        event(
            "request",
            _LEVELS.get(self.status, logging.INFO),
            request_id=self.request_id,
            api=self.api,
            method=self.method,
            status=self.status,
            milliseconds=_milliseconds(self.seconds()),
            **self.fields,
        )


class EventFormatter(logging.Formatter):
    """Formats an event as a JSON object, or plain for a terminal: time, level, name, fields."""

    def __init__(self, plain: bool):
        super().__init__()
        self._plain = plain

    def format(self, record: logging.LogRecord) -> str:
        level, content = record.levelname.lower(), _content(record)
        traceback = self.formatException(record.exc_info) if record.exc_info else None
        if self._plain:
            words = [time.strftime("%H:%M:%S", time.localtime(record.created))]
            words += [*([] if level == "info" else [level]), content.pop("event")]
            words += [f"{name}={_plain(value)}" for name, value in content.items()]
            return "  ".join(words) + ("" if traceback is None else f"\n{traceback}")
        moment = datetime.fromtimestamp(record.created, timezone.utc)
        iso = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        content = {"time": iso, "level": level, **content}
        if traceback is not None:
            content["traceback"] = traceback
        # Values without a JSON form are written as text.
        return orjson.dumps(content, str, orjson.OPT_NON_STR_KEYS).decode()


def configure(stream: TextIO | None = None) -> None:
    """Sends the logs of the service, and the warnings of its libraries, to `stream`.

    None is standard error. They are JSON lines, unless the stream is a terminal.
    """
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    handler.setFormatter(EventFormatter(plain=stream.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO if environment.is_verbose() else logging.WARNING)
    LOGGER.setLevel(logging.INFO)


@contextlib.contextmanager
def written_apart() -> Iterator[None]:
    """Lets a thread write the lines, so that a slow reader of the log delays no request."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    apart = _QueueHandler(handlers)
    root.handlers[:] = [apart]
    try:
        yield
    finally:
        apart.flush()
        root.handlers[:] = handlers


class _QueueHandler(QueueHandler):
    """Gives the records to a thread, which formats and writes them, until it is flushed."""

    def __init__(self, handlers: list[logging.Handler]):
        lines = SimpleQueue[logging.LogRecord]()
        super().__init__(lines)
        self._listener: QueueListener | None = QueueListener(lines, *handlers)
        self._listener.start()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record

    def flush(self) -> None:
        """Writes what is left, and ends the thread; waits for a reader for a second at most."""
        listener, self._listener = self._listener, None
        if listener is not None:
            ending = threading.Thread(target=listener.stop, daemon=True)
            ending.start()
            ending.join(FLUSH_SECONDS)


def _content(record: logging.LogRecord) -> Content:
    if record.name.partition(".")[0] == LOGGER.name:
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return {"event": record.getMessage(), **fields}
    return {"event": "log", "logger": record.name, "message": record.getMessage()}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1e3, 3)


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{_plain(each)}" for name, each in value.items())
    text = str(value)
    return text if text.isprintable() else ascii(text)
