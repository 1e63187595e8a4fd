"""From temporary names to the files of the artifacts, all of them once everything is known good."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import shutil
from collections.abc import Iterable
from typing import Any

from tfx.dsl.io import fileio

from components.click_log_example_gen import inputs
from components.click_log_example_gen.ledger import Part, create

PARTS_FILE = "parts.json"
LETTERS_FILE = "dead_letters.jsonl.gz"
ACCOUNTING_FILE = "accounting.json"


def write_parts(parts: Iterable[Part], folder: str) -> None:
    """Hands what workers did to who runs the pipeline, wherever they ran."""
    _write_json(os.path.join(folder, PARTS_FILE), [dataclasses.asdict(part) for part in parts])


def read_parts(folder: str) -> list[Part]:
    """What `write_parts` wrote."""
    with inputs.source_of(os.path.join(folder, PARTS_FILE), "auto").open() as file:
        return [Part.from_mapping(mapping) for mapping in json.load(file)]


def place_shards(parts: Iterable[Part], split: str, uri: str) -> None:
    """Moves the shards of a split into an artifact, numbered in the order of the input."""
    shards = [shard for part in parts for shard in part.shards if shard.split == split]
    folder = os.path.join(uri, f"Split-{split}")
    fileio.makedirs(folder)
    for place, shard in enumerate(sorted(shards, key=lambda shard: (shard.order, shard.path))):
        name = f"data_tfrecord-{place:05d}-of-{len(shards):05d}.gz"
        fileio.rename(shard.path, os.path.join(folder, name))


def place_letters(parts: Iterable[Part], accounting: dict[str, Any], uri: str) -> None:
    """Writes the dead letters and the accounting."""
    fileio.makedirs(uri)
    # Gzip files one after another are a gzip file.
    with create(os.path.join(uri, LETTERS_FILE)) as out:
        out.write(gzip.compress(b"", mtime=0))
        for path in sorted(path for part in parts for path in part.letters):
            with inputs.source_of(path, "auto").open() as file:
                shutil.copyfileobj(file, out)
    _write_json(os.path.join(uri, ACCOUNTING_FILE), accounting)


def remove(uri: str) -> None:
    """Removes a folder, if it is there."""
    if fileio.exists(uri):
        fileio.rmtree(uri)


def empty(uris: Iterable[str]) -> None:
    """Leaves empty folders, which TFX expects of a failed run, too."""
    for uri in uris:
        remove(uri)
        fileio.makedirs(uri)


def _write_json(path: str, content: object) -> None:
    with create(path) as file:
        file.write(json.dumps(content, indent=2, ensure_ascii=False).encode())
