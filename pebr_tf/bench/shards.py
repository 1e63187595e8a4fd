"""The same corpus in 1, 2 and 4 shards: in one process, and in a process each over gRPC."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pebr_tf.bench.corpus import Corpus
from pebr_tf.config import Index
from pebr_tf.retrieval import build_index, load_index
from pebr_tf.retrieval.remote import RemoteSearcher
from pebr_tf.retrieval.searcher import Searcher
from pebr_tf.retrieval.sharded import ShardedSearcher, split

SHARDS = (1, 2, 4)
BATCH = 256
ROUNDS = 3


def shard_rates(corpus: Corpus) -> Iterator[tuple[int, float, float]]:
    """Shards, queries a second in one process, and queries a second over gRPC."""
    for shards in SHARDS:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            ids = np.arange(len(corpus.items))
            directories = []
            for number, (part_ids, vectors) in enumerate(split(ids, corpus.items, shards)):
                directories.append(folder / str(number))
                build_index(
                    directories[-1],
                    vectors,
                    part_ids,
                    Index(exact_below=0, check_queries=1),
                    corpus.queries[:500],
                    corpus.thresholds[:500],
                )
            inside = ShardedSearcher([load_index(directory) for directory in directories])
            addresses = [stack.enter_context(served(directory)) for directory in directories]
            remote = ShardedSearcher(
                [
                    stack.enter_context(RemoteSearcher(address, timeout_seconds=60))
                    for address in addresses
                ]
            )
            rates = [
                [rate(searcher, corpus) for searcher in (inside, remote)] for _ in range(ROUNDS)
            ]
        yield (shards, *np.median(rates, axis=0))


@contextlib.contextmanager
def served(directory: Path) -> Iterator[str]:
    """The address of a shard server in a process of its own."""
    command = [sys.executable, "-m", "pebr_tf.retrieval.shard_server", str(directory)]
    with subprocess.Popen(
        [*command, "--address", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


def rate(searcher: Searcher, corpus: Corpus) -> float:
    """Queries a second on the queries that nothing was tuned on."""
    begin = time.perf_counter()
    for first in range(500, len(corpus.queries), BATCH):
        part = slice(first, first + BATCH)
        searcher.search(corpus.queries[part], corpus.thresholds[part])
    return (len(corpus.queries) - 500) / (time.perf_counter() - begin)
