"""Runs `pebr`, or a module that containers run, in a process of its own, with the imports done.

Each runs the command from its arguments to its exit code.
"""

import functools
import importlib
import os
import runpy
import signal
import sys
from collections.abc import Callable

import forked

Hook = Callable[[], None]


class FinishedPebr(forked.Finished):
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


class RunningPebr(forked.Running):
    """`pebr ARGUMENTS` in a folder, or `python -m MODULE ARGUMENTS`, with hooks before that."""

    def __init__(self, folder, *arguments, hooks=(), module=None):
        super().__init__(_command, folder, arguments, hooks, module)

    def finish(self):
        return FinishedPebr(**vars(super().finish()))


def pebr(folder, *arguments, hooks=()):
    return RunningPebr(folder, *arguments, hooks=hooks).finish()


def python(folder, module, *arguments):
    return RunningPebr(folder, *arguments, module=module).finish()


def _command(folder, arguments, hooks, module):
    os.chdir(folder)
    # Processes that a shell starts in the background ignore interrupts, and so do their children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for hook in hooks:
        hook()
    if module is not None:
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        return
    from pebr_tf.cli.main import main

    main(list(arguments))


def edited(*modules):
    """As if the code of these modules had been edited."""
    return functools.partial(_edit, modules)


def _edit(modules):
    from pipeline import pipeline

    real = pipeline.source_digest
    pipeline.source_digest = lambda name: "edited" if name in modules else real(name)


def killed_at(module, name, call=1):
    return functools.partial(_replace, module, name, functools.partial(_kill, call, []))


def failing_at(module, name, error):
    return functools.partial(_replace, module, name, functools.partial(_raise, error))


def waiting_at(module, name, pipe):
    """Waits where a function of a module is called, until the writer of a named pipe closes it."""
    return functools.partial(_replace, module, name, functools.partial(_read, pipe))


def _replace(module, name, action):
    owner = importlib.import_module(module)
    *path, name = name.split(".")
    owner = functools.reduce(getattr, path, owner)
    real = getattr(owner, name)

    @functools.wraps(real)
    def replaced(*arguments, **keywords):
        action()
        return real(*arguments, **keywords)

    setattr(owner, name, replaced)


def _raise(error):
    raise error


def _read(pipe):
    pipe.read_bytes()


def _kill(call, calls):
    calls.append(call)
    if len(calls) < call:
        return
    sys.stdout.flush()
    sys.stderr.flush()
    os.kill(os.getpid(), signal.SIGKILL)
