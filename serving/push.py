"""Pushes a release that has been loaded and tested, so that every release that appears works."""

import errno
import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import cast

import tensorflow as tf

from pebr_tf.errors import UserError, one_line
from pebr_tf.files import is_remote
from pebr_tf.manifest import sha256
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.release.release import (
    PushResult,
    Release,
    ReleaseManifest,
    ReleaseSources,
    write_release,
)
from pebr_tf.release.remote import remote_folder, upload
from pebr_tf.release.versions import QUERY_MODEL
from pebr_tf.retrieval.artifact import IndexManifest
from serving.retriever import Retriever
from serving.self_test import SelfTest
from serving.tf_serving.warm_up import write_warm_up

LOGGER = logging.getLogger(__name__)


def push_anywhere(
    releases: str,
    sources: ReleaseSources,
    confirm: Callable[[], None] = lambda: None,
    record: Callable[[int], None] = lambda version: None,
) -> PushResult:
    """Pushes a release to a local or a remote folder of releases; see `push`.

    `confirm` is called at the last moment before the release appears, and may raise; `record` is
    called with its version as soon as it has appeared.
    """
    if not is_remote(releases):
        release = push(Path(releases), sources, confirm)
        record(release.version)
        return PushResult(release.version, str(release.directory.absolute()))
    releases = remote_folder(releases)
    with tempfile.TemporaryDirectory() as scratch:
        result = upload(releases, push(Path(scratch), sources, confirm), confirm)
        record(cast(int, result.version))
        return result


def push(
    releases: Path, sources: ReleaseSources, confirm: Callable[[], None] = lambda: None
) -> Release:
    """Writes a release, with warm-up requests for TF Serving and a self-test, and tests it.

    Both use the example queries of the evaluation. The release is loaded before it appears, with
    all the checks of a server: one that does not load, or does not answer the same twice, never
    appears.

    Raises:
      UserError: What `write_release` rejects, or the release does not work.
    """
    model = sources.config.serving.tf_serving.model

    def finish(directory: Path) -> dict[str, str]:
        checksums = _finish(directory, model)
        confirm()
        return checksums

    return write_release(releases, sources, finish)


def _finish(directory: Path, model: str) -> dict[str, str]:
    queries = _example_queries(ModelEvaluation.load(directory))
    if queries:
        _warm_up(directory / QUERY_MODEL, queries, model)
    else:
        LOGGER.warning("The evaluation has no examples: no warm-up, and an empty self-test.")
    checksums = ReleaseManifest.checksums(directory)
    path = _self_test(directory, queries, checksums).save(directory)
    return {**checksums, path.name: sha256(path)}


def _warm_up(query_model: Path, queries: list[str], model: str) -> None:
    try:
        write_warm_up(query_model, queries, model=model)
    except tf.errors.ResourceExhaustedError as error:
        # TensorFlow's error for a full disk.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def _self_test(directory: Path, queries: list[str], checksums: dict[str, str]) -> SelfTest:
    try:
        # The index may have been damaged since it was built. All other files are fresh copies.
        index = EmbeddedCatalogue(directory).index
        prefix = f"{index.relative_to(directory).as_posix()}/"
        built = {name.removeprefix(prefix): value for name, value in checksums.items()}
        IndexManifest.load(index).verify(index, built)
        retriever = Retriever.load(directory, verify=False)
        answers = SelfTest.record(retriever, queries)
        answers.compare(retriever)
    except Exception as error:
        # Any error here would also stop a server from loading the release.
        reason = one_line(error).replace(f"{directory}/", "").replace(str(directory), "it")
        raise UserError(
            f"a release must load and answer before it is pushed. Received: {reason}."
        ) from error
    return answers


def _example_queries(evaluation: ModelEvaluation) -> list[str]:
    texts = dict.fromkeys(example.query for example in evaluation.examples)
    return [text for text in texts if text.strip()]
