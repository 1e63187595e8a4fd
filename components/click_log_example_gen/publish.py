"""Moves temporary files into the artifacts, after all checks have passed."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import shutil
from collections.abc import Iterable
from typing import Any

from tfx.dsl.io import fileio

from components.click_log_example_gen import inputs
from components.click_log_example_gen.bundle_writer import BundleSummary, create

SUMMARIES_FILE = "summaries.pickle"
LETTERS_FILE = "dead_letters.jsonl.gz"
ACCOUNTING_FILE = "accounting.json"


def write_summaries(summaries: list[BundleSummary], folder: str) -> None:
    """Writes the summaries of all bundles where the executor reads them, on any Beam runner."""
    with create(os.path.join(folder, SUMMARIES_FILE)) as file:
        pickle.dump(summaries, file)


def read_summaries(folder: str) -> list[BundleSummary]:
    with inputs.source_of(os.path.join(folder, SUMMARIES_FILE), "auto").open() as file:
        summaries: list[BundleSummary] = pickle.load(file)
    return summaries


def move_shards(summaries: Iterable[BundleSummary], split: str, uri: str) -> None:
    """Moves the shards of a split into an artifact, numbered in the order of the input."""
    shards = [shard for each in summaries for shard in each.shards if shard.split == split]
    folder = os.path.join(uri, f"Split-{split}")
    fileio.makedirs(folder)
    for number, shard in enumerate(sorted(shards, key=lambda shard: (shard.order, shard.path))):
        name = f"data_tfrecord-{number:05d}-of-{len(shards):05d}.gz"
        fileio.rename(shard.path, os.path.join(folder, name))


def write_dead_letters(
    summaries: Iterable[BundleSummary], accounting: dict[str, Any], uri: str
) -> None:
    fileio.makedirs(uri)
    # Concatenated gzip files are a gzip file.
    with create(os.path.join(uri, LETTERS_FILE)) as out:
        out.write(gzip.compress(b"", mtime=0))
        for path in sorted(path for each in summaries for path in each.letters):
            with inputs.source_of(path, "auto").open() as file:
                shutil.copyfileobj(file, out)
    with create(os.path.join(uri, ACCOUNTING_FILE)) as file:
        file.write(json.dumps(accounting, indent=2, ensure_ascii=False).encode())


def remove(uri: str) -> None:
    if fileio.exists(uri):
        fileio.rmtree(uri)


def empty(uris: Iterable[str]) -> None:
    """Empties folders. TFX expects them to exist after a failed run, too."""
    for uri in uris:
        remove(uri)
        fileio.makedirs(uri)
