"""Runs the pipeline in this process, one component after the other, and reports progress.

TFX's LocalDagRunner reports neither progress nor cache hits nor the paths of results, and does not
prevent two runs from sharing a root.
"""

import contextlib
import errno
import fcntl
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ml_metadata import MetadataStore
from ml_metadata.proto import metadata_store_pb2
from tfx.dsl.compiler import constants
from tfx.dsl.compiler.compiler import Compiler
from tfx.orchestration import metadata
from tfx.orchestration.local import runner_utils
from tfx.orchestration.pipeline import Pipeline
from tfx.orchestration.portable import launcher, runtime_parameter_utils
from tfx.orchestration.portable.mlmd.execution_lib import is_execution_successful

from components.artifacts import PushedRelease, RetrievalEvaluation
from pebr_tf.config import Config
from pebr_tf.data.log_size import FILE as SIZE_FILE
from pebr_tf.data.log_size import LogSize
from pebr_tf.errors import UserError
from pebr_tf.release.evaluation import REPORT_FILE, ModelEvaluation
from pebr_tf.release.release import PushResult
from pipeline.metadata import connect
from pipeline.pipeline import NEVER_CACHED, WHOLE, Options, create_pipeline

# The last line of the traceback of a worker.
_SENTENCE = re.compile(
    r"^pebr_tf\.(?:errors\.UserError|config\.error\.ConfigError): (.*)$", re.MULTILINE
)
# Beam adds this to the text of an error.
_STEP = re.compile(r" \[while running '.*?'\]")
# In every error of Arrow's client of S3.
_STORE = "AWS Error"
# Messages of Python, TensorFlow and SQLite for a full disk.
_FULL = (os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT), "database or disk is full")


class Display(Protocol):
    """Receives the progress of a run."""

    def begin(self, name: str) -> None: ...
    def end(self, name: str, took: str) -> None:
        """Called when a component has finished, with its time or why it took none."""


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


def run(
    config: Config,
    display: Display,
    until: str | None = None,
    cache: bool = True,
    options: Options = WHOLE,
    only: str | None = None,
    run_id: str | None = None,
) -> Outcome:
    """Runs the pipeline of a configuration in this process; see `create_pipeline`.

    With `only`, it runs one component as a part of the run `run_id`, where those that it depends on
    must have succeeded. Without a name, the first component begins a run and the others belong to
    the last one.

    Raises:
      UserError: The user has to fix something, or another run uses the same root.
    """
    began = time.monotonic()
    root = Path(config.pipeline.root)
    with _locked(root):
        pipeline = create_pipeline(config, until, cache, options)
        connection = connect(config.pipeline)
        try:
            run_id = _run(pipeline, connection, display, only, run_id)
        except Exception as error:
            if (user_error := find_user_error(error, root)) is not None:
                raise user_error from error
            raise
        return _outcome(connection, run_id, time.monotonic() - began)


def _run(
    pipeline: Pipeline,
    connection: metadata_store_pb2.ConnectionConfig,
    display: Display,
    only: str | None,
    run_id: str | None,
) -> str:
    """Runs every node in order up to the first failure, or one; returns the name of the run."""
    compiled = Compiler().compile(pipeline)
    nodes = {each.pipeline_node.node_info.id: each.pipeline_node for each in compiled.nodes}
    handle = metadata.Metadata(connection)
    if only is not None:
        if only not in nodes:
            raise UserError(f"--only must be one of {', '.join(nodes)}. Received: {only}.")
        nodes = {only: nodes[only]}
        with handle:
            if run_id is None and nodes[only].upstream_nodes:
                run_id = _last_run(handle.store, pipeline.id)
            succeeded = _succeeded(handle.store, run_id)
        if only in succeeded:
            display.end(only, "done")
            nodes = {}
        elif missing := set(nodes[only].upstream_nodes) - succeeded:
            raise UserError(
                f"--only {only} must follow {', '.join(sorted(missing))} in the same run. "
                f"Received: {'no run' if run_id is None else f'the run {run_id}'}."
            )
    run_id = run_id or f"{time.time_ns()}"
    runtime_parameter_utils.substitute_runtime_parameter(
        compiled, {constants.PIPELINE_RUN_ID_PARAMETER_NAME: run_id}
    )
    deployment = runner_utils.extract_local_deployment_config(compiled)
    for name, node in nodes.items():
        if name == NEVER_CACHED:
            node.execution_options.caching_options.enable_cache = False
        display.begin(name)
        began = time.monotonic()
        execution = launcher.Launcher(
            pipeline_node=node,
            mlmd_connection=handle,
            pipeline_info=compiled.pipeline_info,
            pipeline_runtime_spec=compiled.runtime_spec,
            executor_spec=runner_utils.extract_executor_spec(deployment, name),
            custom_driver_spec=runner_utils.extract_custom_driver_spec(deployment, name),
        ).launch()
        if execution is not None:
            with handle:
                (recorded,) = handle.store.get_executions_by_id([execution.execution_id])
            cached = recorded.last_known_state == metadata_store_pb2.Execution.CACHED
            display.end(name, "cached" if cached else f"{time.monotonic() - began:,.1f} s")
    return run_id


def _last_run(store: MetadataStore, pipeline: str) -> str | None:
    context = store.get_context_by_type_and_name(constants.PIPELINE_CONTEXT_TYPE_NAME, pipeline)
    if context is None:
        return None
    executions = store.get_executions_by_context(context.id)
    newest = max(each.id for each in executions)
    contexts = {each.type: each.name for each in store.get_contexts_by_execution(newest)}
    return contexts[constants.PIPELINE_RUN_CONTEXT_TYPE_NAME]


def _succeeded(store: MetadataStore, run_id: str | None) -> set[str]:
    context = run_id and store.get_context_by_type_and_name(
        constants.PIPELINE_RUN_CONTEXT_TYPE_NAME, run_id
    )
    executions = store.get_executions_by_context(context.id) if context else ()
    # The type of an execution is the path of the component's class, whose name is the id.
    return {each.type.rpartition(".")[2] for each in executions if is_execution_successful(each)}


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
        for line in str(below).splitlines():
            if _STORE in line:
                reason = _STEP.sub("", line).strip().rstrip(".")
                return UserError(f"object stores must be within reach. Received: {reason}.")
        hidden = below.__suppress_context__
        below = below.__cause__ or (None if hidden else below.__context__)
    return None


def _outcome(
    connection: metadata_store_pb2.ConnectionConfig, run_id: str, seconds: float
) -> Outcome:
    store = MetadataStore(connection)
    context = store.get_context_by_type_and_name(constants.PIPELINE_RUN_CONTEXT_TYPE_NAME, run_id)
    artifacts = store.get_artifacts_by_context(context.id) if context else ()
    found: dict[str, metadata_store_pb2.Artifact] = {
        # The catalogue is of the type Examples, too.
        "LogSize" if (Path(each.uri) / SIZE_FILE).exists() else each.type: each
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
