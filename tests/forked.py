"""Calls functions in processes of their own, with the imports done.

Importing TFX takes longer than most of what is tested. The processes here are forked from one that
has imported it and done nothing else. Nor do they convert functions by AutoGraph, which takes
longer than the training; the run of tests/e2e by the installed command does.
"""

import atexit
import gc
import json
import multiprocessing
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        *("pipeline.local_runner", "pipeline.cli.run", "pipeline.trainer", "pebr_tf.report"),
        "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor",
    ]
)
# Only to end a hang: seconds after which a process is given up.
PATIENCE = 900


@dataclass(frozen=True)
class Finished:
    """The exit code of a process, -9 if it was killed, and what it printed."""

    code: int
    out: str
    err: str

    def answer(self):
        assert self.code == 0, self.err
        return json.loads(self.out.splitlines()[-1])


class Running:
    def __init__(self, task, *arguments, environment=None):
        """Starts a call of a function of a module, with these variables in its environment."""
        self._scratch = tempfile.TemporaryDirectory()
        self._streams = [Path(self._scratch.name) / name for name in ("out", "err")]
        self._process = _CONTEXT.Process(
            target=_call, args=(task, arguments, environment or {}, self._streams)
        )
        self._process.start()

    @property
    def pid(self):
        return self._process.pid

    def finish(self):
        """Waits for its end; kills it when patience ends."""
        self._process.join(PATIENCE)
        self.stop()
        return Finished(self._process.exitcode, *(each.read_text("utf8") for each in self._streams))

    def stop(self):
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()


def _call(task, arguments, environment, streams):
    # What the imports made stays: no garbage is looked for in it.
    gc.freeze()
    os.environ.update(environment)
    # Where the first process found it.
    tempfile.tempdir = None
    for path, stream in zip(streams, (1, 2), strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.stdout.reconfigure(encoding="utf-8")
    _turn_autograph_off()
    task(*arguments)
    # As at the end of an interpreter: TensorFlow removes its files.
    atexit._run_exitfuncs()


def _turn_autograph_off():
    from tensorflow.python.autograph.core import ag_ctx

    off = ag_ctx.ControlStatusCtx(ag_ctx.Status.DISABLED)
    ag_ctx.stacks.control_status = [off]
    # In threads that start later.
    ag_ctx._default_control_status_ctx = lambda: off
