"""Runs `pebr`, or a module that containers run, in a process of its own, with the imports done.

A cached run spends half of its time on importing TFX. The processes here are forked from one that
has imported it and done nothing else. Each runs the command from its arguments to its exit code;
`pebr` without AutoGraph, which takes longer than the training. The first run has it.
"""

import contextlib
import functools
import importlib
import multiprocessing
import os
import runpy
import signal
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_MODULES = [
    *("pipeline.local_runner", "pipeline.cli.run", "pipeline.trainer", "pebr_tf.report"),
    "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor",
]
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(_MODULES)
# Seconds; far more than any command here takes.
LONGEST = 900
Hook = Callable[[], None]


@dataclass(frozen=True)
class Finished:
    """The exit code of a command, -9 if it was killed, and what it printed."""

    code: int
    out: str
    err: str

    def states(self):
        """`cached` or `ran` for each component of a run."""
        lines = (line.split() for line in self.out.splitlines())
        return {
            words[0]: "cached" if words[1] == "cached" else "ran"
            for words in lines
            if len(words) in (2, 3) and words[0][0].isupper() and words[-1] in ("cached", "s")
        }

    def ran(self):
        return [name for name, state in self.states().items() if state == "ran"]


class Running:
    def __init__(self, folder, *arguments, hooks=(), module=None):
        """Starts `pebr ARGUMENTS` in a folder, or `python -m MODULE ARGUMENTS`.

        `hooks` are called first, in its process.
        """
        self._scratch = tempfile.TemporaryDirectory()
        self._streams = tuple(Path(self._scratch.name) / name for name in ("out", "err"))
        self._process = _CONTEXT.Process(
            target=_command, args=(folder, arguments, hooks, module, *self._streams)
        )
        self._process.start()

    @property
    def pid(self):
        return self._process.pid

    def finish(self):
        """Waits for its end; kills it after LONGEST seconds."""
        self._process.join(LONGEST)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        out, err = (path.read_text("utf-8") for path in self._streams)
        self._scratch.cleanup()
        return Finished(self._process.exitcode, out, err)


def pebr(folder, *arguments, hooks=()):
    return Running(folder, *arguments, hooks=hooks).finish()


def python(folder, module, *arguments):
    return Running(folder, *arguments, module=module).finish()


def _command(folder, arguments, hooks, module, out, err):
    os.chdir(folder)
    # Processes that a shell starts in the background ignore interrupts, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for path, stream in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    sys.stdout.reconfigure(encoding="utf-8")
    for hook in hooks:
        hook()
    if module is not None:
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    import tensorflow as tf

    from pebr_tf.cli.main import main

    tf.autograph.experimental.do_not_convert(main)(list(arguments))


def edited(*modules):
    """As if the code of these modules had been edited."""
    return functools.partial(_edit, modules)


def _edit(modules):
    from pipeline import pipeline

    real = pipeline.source_digest
    pipeline.source_digest = lambda name: "edited" if name in modules else real(name)


def killed_at(module, name):
    return functools.partial(_replace, module, name, _kill)


def failing_at(module, name, error):
    return functools.partial(_replace, module, name, functools.partial(_raise, error))


def waiting_at(module, name, pipe):
    """Waits where a function of a module is called, until the writer of a named pipe closes it."""
    return functools.partial(_replace, module, name, functools.partial(_read, pipe))


def _replace(module, name, action):
    owner = importlib.import_module(module)
    real = getattr(owner, name)

    @functools.wraps(real)
    def replaced(*arguments, **keywords):
        action()
        return real(*arguments, **keywords)

    setattr(owner, name, replaced)


def killed_in_training(step):
    return functools.partial(_kill_in_training, step)


def _kill_in_training(last):
    # Not in `pipeline.trainer`, which TFX imports again.
    from pipeline import display

    real = display.training_progress

    @contextlib.contextmanager
    def watched(*arguments):
        with real(*arguments) as progress:

            def show(step, loss):
                progress(step, loss)
                if step >= last:
                    _kill()

            yield show

    display.training_progress = watched


def _raise(error):
    raise error


def _read(pipe):
    pipe.read_bytes()


def _kill():
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
