"""Pushes a release that has been loaded and asked, so that what appears also answers."""

from __future__ import annotations

import errno
import functools
import logging
import os
from dataclasses import replace
from pathlib import Path

import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.release.evaluation import ModelEvaluation
from serving import manifest as manifests
from serving import self_test
from serving.release import Parts, Release, write_release
from serving.retriever import Retriever
from serving.tf_serving.warm_up import write_warm_up
from serving.versions import Clock, utc_now

LOGGER = logging.getLogger(__name__)


def push(releases: Path, parts: Parts, now: Clock = utc_now) -> Release:
    """Writes a release, with warm-up requests for TF Serving and a self-test, and tries it.

    Both ask the queries that the evaluation has for examples. The release is loaded while it is
    out of sight, with all the checks of a server: one that does not load, or does not answer the
    same twice, never appears.

    Raises:
      UserError: What `write_release` refuses, or the release does not work.
    """
    finish = functools.partial(_finish, model=parts.config.serving.tf_serving.model)
    return write_release(releases, parts, finish, now)


def _finish(directory: Path, model: str) -> None:
    queries = _example_queries(ModelEvaluation.load(directory))
    if queries:
        _warm_up(directory, queries, model)
    else:
        LOGGER.warning("The evaluation has no examples: no warm-up, and an empty self-test.")
    draft = replace(manifests.read(directory), files=manifests.checksums(directory))
    draft.write(directory)
    self_test.write(directory, _tried(directory, queries))


def _warm_up(directory: Path, queries: list[str], model: str) -> None:
    try:
        write_warm_up(directory / "query_model", queries, model=model)
    except tf.errors.ResourceExhaustedError as error:
        # TensorFlow's word for a full disk.
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from error


def _tried(directory: Path, queries: list[str]) -> list[self_test.Recorded]:
    """What the release answers, twice the same."""
    try:
        retriever = Retriever.load(directory)
        answers = self_test.record(retriever, queries)
        self_test.compare(retriever, answers)
    except Exception as error:
        # Whatever it is would also keep a server from loading it.
        reason = str(error).replace(f"{directory}/", "").replace(str(directory), "it")
        reason = " ".join(reason.split()).rstrip(".")
        raise UserError(
            f"a release must load and answer before it is pushed. Received: {reason}."
        ) from error
    return answers


def _example_queries(evaluation: ModelEvaluation) -> list[str]:
    """The queries of the examples, each once."""
    texts = dict.fromkeys(example.query for example in evaluation.examples)
    return [text for text in texts if text.strip()]
