"""Loads releases, and replaces the one that answers under load.

A directory of releases is polled every few seconds. The newest version that has not been withdrawn
is loaded beside the one that answers, verified (manifest, checksums, self-test), warmed up, and
takes over in one assignment. A batch reads the current release once, so that a response comes from
one release only. A version that cannot be loaded is rejected, with its reason in the log and in the
metrics, and the current release goes on. The version is tried again after longer and longer pauses,
because a copy may not have been complete, or TF Serving may not have loaded it yet.
"""

import gc
import logging
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pebr_tf.config import Serving
from pebr_tf.errors import UserError
from pebr_tf.release.release import ReleaseManifest, find_release
from pebr_tf.release.towers import QueryModelDescription
from pebr_tf.release.versions import QUERY_MODEL, served
from serving.errors import ServiceError
from serving.retriever import Retriever
from serving.self_test import SelfTest
from serving.service.metrics import Metrics

# The pause before a rejected version is tried again: `poll_seconds`, doubled each time, up to this.
LONGEST_PAUSE = 300.0
WARM_UP_QUERY = "warm up"
# Time for a TF Serving that starts at the same time to load its models.
START_SECONDS = 60.0

log = logging.getLogger("pebr.releases")


@dataclass(frozen=True)
class ReleaseSource:
    """One release or, with `follow`, a directory of releases, which is polled."""

    directory: Path
    follow: bool


@dataclass(frozen=True)
class _Rejection:
    """A version that could not be loaded: why, how often, and when to try again."""

    reason: str
    tries: int
    next_try: float


class ReleaseManager:
    """Holds the release that answers, and follows a directory of releases."""

    _current: Retriever | None = None
    _previous: Retriever | None = None

    def __init__(self, source: ReleaseSource, settings: Serving, metrics: Metrics):
        """Loads the first release.

        Raises:
          UserError: No release can be loaded; gives the reason for the newest.
        """
        self._source, self._settings, self._metrics = source, settings, metrics
        self._rejections: dict[int, _Rejection] = {}
        # TF Serving may be starting beside this process: the first release waits for it.
        self._patience = START_SECONDS
        if source.follow:
            self.poll()
            if self._current is None:
                reasons = [each.reason for each in self._rejections.values()]
                raise UserError(
                    reasons[0] if reasons else f"{source.directory} must hold a release to serve."
                )
        else:
            try:
                self._switch_to(self._load(find_release(source.directory)))
            except ServiceError as error:
                raise UserError(str(error)) from None
        self._free_previous()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        if source.follow:
            self._thread = threading.Thread(target=self._watch, name="releases", daemon=True)
            self._thread.start()

    @property
    def retriever(self) -> Retriever:
        assert self._current is not None
        return self._current

    def close(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def poll(self) -> None:
        """Switches to the newest version that can be served, unless it already answers."""
        # Not right after a swap, when a batch may still use the previous release.
        if self._previous is not None:
            self._free_previous()
        root = self._source.directory
        candidates = served(root)
        self._rejections = {v: r for v, r in self._rejections.items() if v in candidates}
        for version in reversed(candidates):
            if self._current is not None and version == self._current.release.version:
                break
            rejection = self._rejections.get(version)
            if rejection is not None and time.monotonic() < rejection.next_try:
                continue
            try:
                retriever = self._load(root / str(version))
            except Exception as error:
                known = isinstance(error, UserError | ServiceError | OSError)
                reason = str(error) if known else f"{type(error).__name__}: {error}"
                self._reject(version, reason, rejection)
                continue
            self._rejections.pop(version, None)
            self._switch_to(retriever)
            break
        self._metrics.rejected_releases({v: each.reason for v, each in self._rejections.items()})

    def _load(self, directory: Path) -> Retriever:
        encoder = None
        try:
            if self._settings.backend == "tf_serving":
                from serving.tf_serving.remote_encoder import RemoteEncoder

                encoder = RemoteEncoder(
                    self._settings.tf_serving,
                    version=ReleaseManifest.load(directory).version,
                    dimension=QueryModelDescription.load(directory / QUERY_MODEL).dimension,
                )
                patience, self._patience = self._patience, 0.0
                encoder.wait_ready(patience)
                self._metrics.breaker(encoder.breaker)
            retriever = Retriever.load(directory, encoder=encoder)
            SelfTest.load(directory).compare(retriever)
            size = 1
            while size <= self._settings.batching.max_size:
                retriever.retrieve([WARM_UP_QUERY] * size)
                size *= 2
        except Exception:
            _close(encoder)
            raise
        return retriever

    def _switch_to(self, retriever: Retriever) -> None:
        self._previous, self._current = self._current, retriever
        version, previous = retriever.release.version, self._previous
        self._metrics.release(version, swapped=previous is not None)
        if previous is not None:
            log.info("swapped", extra={"release": version, "before": previous.release.version})

    def _free_previous(self) -> None:
        """Frees the previous release, and hides the current one from the garbage collector.

        A release has a million long-lived objects; traversing them again and again would delay
        requests by hundreds of milliseconds.
        """
        if self._previous is not None:
            _close(self._previous.encoder)
        self._previous = None
        gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _reject(self, version: int, reason: str, before: _Rejection | None) -> None:
        tries = 1 if before is None else before.tries + 1
        pause = min(self._settings.poll_seconds * 2 ** min(tries, 30), LONGEST_PAUSE)
        self._rejections[version] = _Rejection(reason, tries, time.monotonic() + pause)
        self._metrics.rejections.inc()
        if before is None or before.reason != reason:
            log.error("rejected", extra={"release": version, "reason": reason})

    def _watch(self) -> None:
        while not self._stopping.wait(self._settings.poll_seconds):
            try:
                self.poll()
            except Exception as error:
                # The directory may be unavailable for a while; the current release goes on.
                log.error("look_failed", extra={"reason": f"{type(error).__name__}: {error}"})


def _close(encoder: Any) -> None:
    if hasattr(encoder, "close"):
        encoder.close()
