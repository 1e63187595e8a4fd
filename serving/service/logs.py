"""Logs of the service on standard error: JSON lines, or readable lines on a terminal.

Two kinds of lines: `request`, one for each call or page, and events (start, ready, drain, ...).
The text of queries is in none of them, unless `serving.log_queries` asks for it.
"""

from __future__ import annotations

import contextlib
import logging
import random
import re
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, TextIO

import orjson

from pebr_tf import environment
from serving.service.call import Call, Reply, Stages

# Modules of the service log under it: the message is the event, `extra` its fields.
LOGGER = logging.getLogger("pebr")
REQUEST_ID = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")
# The server's trouble rather than the caller's.
_LEVELS = {
    "INTERNAL": "error",
    "UNAVAILABLE": "warning",
    "RESOURCE_EXHAUSTED": "warning",
    "DEADLINE_EXCEEDED": "warning",
}
# How long the line of a request waits for others.
GATHER_SECONDS = 0.1
Content = dict[str, Any]
# What every record of the logging module has.
_STANDARD = {*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"}
_requests: _Requests | None = None


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Writes one line about the service itself; safe in any thread."""
    LOGGER.log(level, name, extra=fields)


def failure(name: str, **fields: Any) -> None:
    """Writes one line about the exception being handled, its traceback included."""
    LOGGER.error(name, extra=fields, exc_info=True)


def new_request_id(given: str | None) -> str:
    """The caller's id of a request where it is fit to print, else a new one."""
    if given is not None and REQUEST_ID.fullmatch(given):
        return given
    return f"{random.getrandbits(128):032x}"


@dataclass
class Record:
    """What the log says of one request; filled in while the request is answered.

    Attributes:
      api: "grpc" or "http".
      method: Name of the method, or verb and path.
      request_id: In the answer as well.
      begun: `time.perf_counter()` at its arrival.
      status: Name of a gRPC status, for both APIs.
      fields: All else: counts, stages, release, the field or the sentence of an error.
    """

    api: str
    method: str
    request_id: str
    begun: float = field(default_factory=time.perf_counter)
    status: str = "OK"
    fields: dict[str, Any] = field(default_factory=dict)
    _stages: Stages | None = None

    def seconds(self) -> float:
        """Since its arrival."""
        return time.perf_counter() - self.begun

    def asked(self, call: Call, with_text: bool) -> None:
        """Adds what was asked."""
        self.fields["queries"] = len(call.queries)
        if with_text:
            self.fields["texts"] = call.queries

    def answered(self, reply: Reply) -> None:
        """Adds what was found, and where the time went."""
        self.fields["items"] = len(reply.answer.items.scores)
        self.fields["release"] = reply.version
        self._stages = reply.stages

    def refused(self, error: Exception, status: str) -> None:
        """Adds why there is no answer; of a caller's mistake the field alone, not what it held."""
        self.status = status
        if (name := getattr(error, "field", None)) is not None:
            self.fields["field"] = name[:100]
        elif status != "INTERNAL":
            self.fields["error"] = str(error)

    def write(self) -> None:
        """Has the line written within `GATHER_SECONDS`, if logs are configured."""
        if _requests is None:
            return
        content = {
            "time": time.time(),
            "level": _LEVELS.get(self.status, "info"),
            "event": "request",
            "request_id": self.request_id,
            "api": self.api,
            "method": self.method,
            "status": self.status,
            "milliseconds": _milliseconds(self.seconds()),
            **self.fields,
        }
        if (stages := self._stages) is not None:
            content["stages"] = {
                "queue": _milliseconds(stages.queue),
                "encode": _milliseconds(stages.encode),
                "search": _milliseconds(stages.search),
                "lookup": _milliseconds(stages.lookup),
            }
        _requests.add(content)


class _Requests:
    """The lines of requests, gathered for a moment and written at once.

    The logging module takes longer for a line than the search for a short list.
    """

    def __init__(self, handler: logging.StreamHandler, render: Callable[[Content], str]):
        """Writes where `handler` does; begins with the first line."""
        self._handler, self._render = handler, render
        self._waiting: deque[Content] = deque()
        self._some = threading.Event()
        threading.Thread(target=self._run, name="request-log", daemon=True).start()

    def add(self, content: Content) -> None:
        """Takes a line; from any thread."""
        self._waiting.append(content)
        if not self._some.is_set():
            self._some.set()

    def flush(self) -> None:
        """Writes what is there."""
        lines = []
        with contextlib.suppress(IndexError):
            while True:
                lines.append(self._render(self._waiting.popleft()))
        if not lines:
            return
        self._handler.acquire()
        try:
            self._handler.stream.write("\n".join(lines) + "\n")
            self._handler.flush()
        except (OSError, ValueError):
            # Nobody reads any more; the service goes on.
            pass
        finally:
            self._handler.release()

    def _run(self) -> None:
        while True:
            self._some.wait()
            time.sleep(GATHER_SECONDS)
            self._some.clear()
            self.flush()


def flush() -> None:
    """Writes the lines of requests that have been gathered; before the process ends."""
    if _requests is not None:
        _requests.flush()


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, event, and the fields of the event."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        content = {
            "time": record.created,
            "level": record.levelname.lower(),
            **_content(record),
        }
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)
        return json_line(content)


class PlainLines(logging.Formatter):
    """Time, level where it is worth a look, event, and its fields as name=value."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without what would steer a terminal."""
        level = record.levelname.lower()
        line = plain_line({"time": record.created, "level": level, **_content(record)})
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def json_line(content: Content) -> str:
    """Content with its time, in seconds, as ISO 8601."""
    # A value that JSON has no form for must not cost the line.
    options = orjson.OPT_NON_STR_KEYS
    return orjson.dumps({**content, "time": _iso(content["time"])}, str, options).decode()


def plain_line(content: Content) -> str:
    """The same for a person at a terminal."""
    words = [time.strftime("%H:%M:%S", time.localtime(content["time"]))]
    if content["level"] != "info":
        words.append(content["level"])
    words.append(content["event"])
    fields = (item for item in content.items() if item[0] not in ("time", "level", "event"))
    return "  ".join([*words, *(f"{name}={_plain(value)}" for name, value in fields)])


def configure(stream: TextIO | None = None) -> None:
    """Sends the logs of the service, and the warnings of its libraries, to `stream`.

    Args:
      stream: None for standard error. JSON lines, unless it is a terminal.
    """
    global _requests
    stream = sys.stderr if stream is None else stream
    handler = logging.StreamHandler(stream)
    plain = stream.isatty()
    handler.setFormatter(PlainLines() if plain else JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO if environment.is_verbose() else logging.WARNING)
    LOGGER.setLevel(logging.INFO)
    _requests = _Requests(handler, plain_line if plain else json_line)


def _content(record: logging.LogRecord) -> dict[str, Any]:
    """The event and its fields; what a library says is the event `log`."""
    if record.name.partition(".")[0] == LOGGER.name:
        fields = {name: value for name, value in vars(record).items() if name not in _STANDARD}
        return {"event": record.getMessage(), **fields}
    return {"event": "log", "logger": record.name, "message": record.getMessage()}


def _milliseconds(seconds: float) -> float:
    return round(seconds * 1e3, 3)


def _iso(seconds: float) -> str:
    moment = datetime.fromtimestamp(seconds, timezone.utc)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{_plain(each)}" for name, each in value.items())
    text = str(value)
    return text if text.isprintable() else ascii(text)
