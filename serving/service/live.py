"""The release that answers now, and its exchange for another under load.

A folder of releases is looked at every few seconds. The newest version that has not been withdrawn
is loaded beside the one that answers, verified (manifest, checksums, self-test), warmed up, and
takes its place in one assignment. A batch reads that place once, so that an answer is wholly of one
release. A version that cannot be loaded is refused, with its reason in the log and in the metrics,
and the one before goes on; it is tried again after longer and longer pauses, for a copy may not
have been complete, or TF Serving not have it yet.
"""

from __future__ import annotations

import gc
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pebr_tf.config import Serving
from pebr_tf.errors import UserError
from serving import manifest as manifests
from serving import self_test
from serving.errors import ServiceError
from serving.release import find_release
from serving.retriever import Retriever
from serving.service.metrics import Metrics
from serving.signatures import read_facts
from serving.versions import served

if TYPE_CHECKING:
    from serving.tf_serving.remote_encoder import RemoteEncoder

# Pauses before a refused version is tried again: the poll's own, doubled each time, up to this.
LONGEST_PAUSE = 300.0
WARM_UP_QUERY = "warm up"
# For a TF Serving that is started at the same time to have loaded its models.
START_SECONDS = 60.0

log = logging.getLogger("pebr.live")


@dataclass(frozen=True)
class ReleaseSource:
    """Where releases come from.

    Attributes:
      directory: One release, or a folder of releases.
      follow: Whether it is a folder of releases, looked at again and again.
    """

    directory: Path
    follow: bool


@dataclass(frozen=True)
class _Refusal:
    """A version that was not taken: why, how often, and when to try again."""

    reason: str
    tries: int
    next_try: float


class Live:
    """Holds the retriever that answers."""

    def __init__(
        self,
        source: ReleaseSource,
        settings: Serving,
        metrics: Metrics,
        clock: Callable[[], float] = time.monotonic,
    ):
        """Loads the first release.

        Args:
          source: Where releases come from.
          settings: The backend, the batch sizes to warm up, and the time between looks.
          metrics: Told of every swap and refusal.
          clock: Seconds, never going back.

        Raises:
          UserError: No release that can be loaded; says why of the newest.
        """
        self._source, self._settings, self._metrics = source, settings, metrics
        self._clock = clock
        self._refusals: dict[int, _Refusal] = {}
        self._current: Retriever | None = None
        self._before: Retriever | None = None
        # TF Serving may be starting beside this process: the first release waits for it.
        self._patience = START_SECONDS
        if source.follow:
            self.look()
            if self._current is None:
                reasons = [refusal.reason for refusal in self._refusals.values()]
                raise UserError(
                    reasons[0] if reasons else f"{source.directory} must hold a release to serve."
                )
        else:
            try:
                self._take(self._load(find_release(source.directory)))
            except ServiceError as error:
                raise UserError(str(error)) from None
        self._tidy()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if source.follow:
            self._thread = threading.Thread(target=self._watch, name="releases", daemon=True)
            self._thread.start()

    @property
    def retriever(self) -> Retriever:
        """What answers now."""
        assert self._current is not None
        return self._current

    def close(self) -> None:
        """Ends the looking."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def look(self) -> None:
        """Goes to the newest version that can be served, if that is not the one that answers."""
        # Not at once after a swap, when batches may still be answered from the release before.
        if self._before is not None:
            self._tidy()
        root = self._source.directory
        candidates = served(root)
        self._refusals = {v: r for v, r in self._refusals.items() if v in candidates}
        for version in reversed(candidates):
            if self._current is not None and version == self._current.release.version:
                break
            refusal = self._refusals.get(version)
            if refusal is not None and self._clock() < refusal.next_try:
                continue
            try:
                retriever = self._load(root / str(version))
            except Exception as error:
                known = isinstance(error, UserError | ServiceError | OSError)
                reason = str(error) if known else f"{type(error).__name__}: {error}"
                self._refuse(version, reason, refusal)
                continue
            self._refusals.pop(version, None)
            self._take(retriever)
            break
        self._metrics.refused({v: each.reason for v, each in self._refusals.items()})

    def _load(self, directory: Path) -> Retriever:
        """A release, verified and warm."""
        encoder = self._remote_encoder(directory)
        try:
            retriever = Retriever.load(directory, encoder=encoder)
            self_test.check(retriever)
            size = 1
            while size <= self._settings.batching.max_size:
                retriever.retrieve([WARM_UP_QUERY] * size)
                size *= 2
        except Exception:
            _close(encoder)
            raise
        return retriever

    def _remote_encoder(self, directory: Path) -> RemoteEncoder | None:
        if self._settings.backend == "embedded":
            return None
        from serving.tf_serving.remote_encoder import RemoteEncoder

        encoder = RemoteEncoder(
            self._settings.tf_serving,
            version=manifests.read(directory).version,
            dimension=read_facts(directory / "query_model").get("dimension"),
        )
        patience, self._patience = self._patience, 0.0
        try:
            if patience:
                encoder.wait_ready(patience)
            encoder.check()
        except Exception:
            encoder.close()
            raise
        self._metrics.breaker(lambda: encoder.breaker.state)
        return encoder

    def _take(self, retriever: Retriever) -> None:
        self._before, self._current = self._current, retriever
        version, before = retriever.release.version, self._before
        self._metrics.release(version, swapped=before is not None)
        if before is not None:
            log.info("swapped", extra={"release": version, "before": before.release.version})

    def _tidy(self) -> None:
        """Lets the release before go, and keeps the garbage collector from the one that answers.

        A release is a million objects that live long. Looking at all of them again and again, the
        collector would make calls wait for hundreds of milliseconds.
        """
        if self._before is not None:
            _close(self._before.encoder)
        self._before = None
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _refuse(self, version: int, reason: str, before: _Refusal | None) -> None:
        tries = 1 if before is None else before.tries + 1
        pause = min(self._settings.poll_seconds * 2 ** min(tries, 30), LONGEST_PAUSE)
        self._refusals[version] = _Refusal(reason, tries, self._clock() + pause)
        self._metrics.refusal()
        if before is None or before.reason != reason:
            log.error("refused", extra={"release": version, "reason": reason})

    def _watch(self) -> None:
        while not self._stopping.wait(self._settings.poll_seconds):
            try:
                self.look()
            except Exception as error:
                # The folder may be away for a while; what answers goes on.
                log.error("look_failed", extra={"reason": f"{type(error).__name__}: {error}"})


def _close(encoder: Any) -> None:
    """Ends the connection of an encoder that has one."""
    if hasattr(encoder, "close"):
        encoder.close()
