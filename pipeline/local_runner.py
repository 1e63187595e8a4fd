"""Runs the pipeline in this process, one component after the other, and reports progress.

TFX's LocalDagRunner reports neither progress nor cache hits nor the paths of results, and does not
prevent two runs from sharing a root.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler import constants
from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import launcher, runtime_parameter_utils, tfx_runner
from tfx.proto.orchestration import pipeline_pb2

from components.artifacts import PushedRelease, RetrievalEvaluation
from pebr_tf.config import Config
from pebr_tf.data.log_size import FILE as SIZE_FILE
from pebr_tf.data.log_size import LogSize
from pebr_tf.errors import UserError
from pebr_tf.release.evaluation import REPORT_FILE, ModelEvaluation
from pebr_tf.release.release import PushResult
from pipeline.pipeline import NEVER_CACHED, WHOLE, Options, create_pipeline

# The last line of the traceback of a worker.
_SENTENCE = re.compile(
    r"^pebr_tf\.(?:errors\.UserError|config\.error\.ConfigError): (.*)$", re.MULTILINE
)
# Beam adds this to the text of an error.
_STEP = re.compile(r" \[while running '.*?'\]")
# Messages of Python, TensorFlow and SQLite for a full disk.
_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "database or disk is full")


class Display(Protocol):
    """Receives the progress of a run."""

    def begin(self, name: str) -> None:
        """Called when a component starts."""

    def end(self, name: str, seconds: float, cached: bool) -> None:
        """Called when a component has finished."""


@dataclass(frozen=True)
class Outcome:
    """The results of a run; those that the run did not reach are None.

    Attributes:
      size: Size of the log, which determines the settings that are `auto`.
    """

    size: LogSize | None
    evaluation: ModelEvaluation | None
    report: Path | None
    release: Path | None
    seconds: float


class LocalRunner(tfx_runner.IrBasedRunner):
    """Runs a compiled pipeline in this process; `run_id` names the last run in the metadata."""

    def __init__(self, display: Display):
        self._display = display
        self.run_id = ""

    def run_with_ir(self, pipeline: pipeline_pb2.Pipeline, run_options: Any = None) -> None:
        """Runs every node in order; the first failure ends the run."""
        del run_options
        self.run_id = f"{time.time_ns()}"
        runtime_parameter_utils.substitute_runtime_parameter(
            pipeline, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: self.run_id}
        )
        deployment = runner_utils.extract_local_deployment_config(pipeline)
        connection = deployment.metadata_connection_config
        chosen = getattr(connection, connection.WhichOneof("connection_config"))
        for wrapper in pipeline.nodes:
            node = wrapper.pipeline_node
            name = node.node_info.id
            if name == NEVER_CACHED:
                node.execution_options.caching_options.enable_cache = False
            self._display.begin(name)
            began = time.monotonic()
            execution = launcher.Launcher(
                pipeline_node=node,
                mlmd_connection=metadata.Metadata(chosen),
                pipeline_info=pipeline.pipeline_info,
                pipeline_runtime_spec=pipeline.runtime_spec,
                executor_spec=runner_utils.extract_executor_spec(deployment, name),
                custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, name),
            ).launch()
            if execution is not None:
                cached = _is_cached(chosen, execution.execution_id)
                self._display.end(name, time.monotonic() - began, cached)


def run(
    config: Config,
    display: Display,
    until: str | None = None,
    cache: bool = True,
    options: Options = WHOLE,
) -> Outcome:
    """Runs the pipeline of a configuration in this process; see `create_pipeline`.

    Raises:
      UserError: The user has to fix something, or another run uses the same root.
    """
    began = time.monotonic()
    root = Path(config.pipeline.root)
    with _locked(root):
        pipeline = create_pipeline(config, until, cache, options)
        runner = LocalRunner(display)
        try:
            runner.run(pipeline)
        except Exception as error:
            if (user_error := find_user_error(error, root)) is not None:
                raise user_error from error
            raise
        return _outcome(pipeline, runner.run_id, time.monotonic() - began)


@contextlib.contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Holds the lock of the root; the system releases it when the process ends in any way."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        lock = (root / ".lock").open("a+")
    except OSError as error:
        raise UserError(
            f"pipeline.root must be a folder to write to. Received: {root}, {error.strerror}."
        ) from error
    with lock as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise UserError(
                f"pipeline.root must be used by one run at a time. Received: {root}, where "
                f"process {holder} is at work."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def _is_cached(connection: Any, execution_id: int) -> bool:
    with metadata.Metadata(connection) as handle:
        (execution,) = handle.store.get_executions_by_id([execution_id])
    return execution.last_known_state == metadata_store_pb2.Execution.CACHED


def find_user_error(error: BaseException, root: Path) -> UserError | None:
    """The UserError inside the errors that Beam and TFX wrap around it, or None.

    An error about space that names no file is reported for `root`.
    """
    below: BaseException | None = error
    while below is not None:
        # The error of a worker arrives unchanged or as the text of its traceback.
        sentences = [str(below)] if isinstance(below, UserError) else _SENTENCE.findall(str(below))
        if sentences:
            return UserError(_STEP.sub("", sentences[-1]))
        for reason in _FULL:
            if reason in str(below):
                path = getattr(below, "filename", None) or root
                return UserError(f"{path} must have space. Received: {reason}.")
        hidden = below.__suppress_context__
        below = below.__cause__ or (None if hidden else below.__context__)
    return None


def _outcome(pipeline: Pipeline, run_id: str, seconds: float) -> Outcome:
    store = MetadataStore(pipeline.metadata_connection_config)
    context = store.get_context_by_type_and_name("pipeline_run", run_id)
    types = {kind.id: kind.name for kind in store.get_artifact_types()}
    artifacts = store.get_artifacts_by_context(context.id) if context else ()
    found: dict[str, metadata_store_pb2.Artifact] = {
        # The catalogue is of the type Examples, too.
        "LogSize" if (Path(each.uri) / SIZE_FILE).exists() else types[each.type_id]: each
        for each in artifacts
    }
    evaluation = report = release = size = None
    if sized := found.get("LogSize"):
        size = LogSize.load(sized.uri)
    if measured := found.get(RetrievalEvaluation.TYPE_NAME):
        report = Path(measured.uri) / REPORT_FILE
        evaluation = ModelEvaluation.load(Path(measured.uri))
    if pushed := found.get(PushedRelease.TYPE_NAME):
        path = PushResult.load(Path(pushed.uri)).path
        release = Path(path) if path else None
    return Outcome(size, evaluation, report, release, seconds)
