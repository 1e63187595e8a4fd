"""Searchers in trouble; nothing heavy is imported, for a new process of a pool imports this."""

import os
import signal
import threading
from pathlib import Path

import numpy as np

from pebr_tf.retrieval.exact import ExactSearcher
from pebr_tf.retrieval.sharded import ShardUnavailable


class DeadSearcher(ExactSearcher):
    """Knows itself, and answers nothing."""

    def _search(self, request):
        raise ShardUnavailable("Nobody is at home.")

    def _expected_count(self, queries, thresholds):
        raise ShardUnavailable("Nobody is at home.")


class StuckSearcher(ExactSearcher):
    """Says when it was asked, and answers when it is let."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def _search(self, request):
        self.asked.set()
        assert self.go_on.wait(30)
        return super()._search(request)


class FailingSearcher(ExactSearcher):
    """Raises what its queries' number says."""

    def _search(self, request):
        if len(request) == 1:
            raise ValueError("queries must be more than one. Received: 1.")
        if len(request) == 2:
            raise UnportableError("one", "two")
        return super()._search(request)


class UnportableError(Exception):
    """Pickled, it cannot be made again: it takes two arguments and keeps one."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class FatalSearcher(ExactSearcher):
    """Takes its process with it when the queries are as many as its items."""

    def _search(self, request):
        if len(request) == len(self):
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._search(request)


class ProcessSearcher(ExactSearcher):
    """Finds one item, whose id is the process that answers."""

    def _search(self, request):
        found = super()._search(request)
        return found.__class__(
            **{**vars(found), "item_ids": np.full_like(found.item_ids, os.getpid())}
        )


class HeldSearcher(ExactSearcher):
    """Answers one query only when somebody has opened and closed the other end of a pipe."""

    def __init__(self, vectors, pipe):
        super().__init__(vectors)
        self.pipe = pipe

    def _search(self, request):
        if len(request) == 1:
            Path(self.pipe).read_bytes()
        return super()._search(request)


def load_file(path):
    """A searcher of the vectors in a file."""
    return ExactSearcher(np.loadtxt(Path(path), ndmin=2))


def die():
    """Never loads."""
    os._exit(3)
