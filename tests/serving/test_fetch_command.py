"""`pebr fetch`: what it prints, how it ends, and that it goes on."""

import os
import signal

import pytest
from pebr_command import invoke
from pebr_command import run as run_pebr

from pebr_tf.errors import UserError
from pebr_tf.release.release import Release, write_release
from pebr_tf.release.versions import versions
from serving.cli.fetch import fetch
from serving.push import push_anywhere

REMOTE = "ram://bucket/releases"
pytestmark = pytest.mark.usefixtures("memory_store")

EMPTY = f"pebr: {REMOTE} must have a release that is whole and not withdrawn.\n"


@pytest.fixture(autouse=True)
def handlers():
    """The command leaves its own behind, for it is about to end the process."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def push(parts, monkeypatch):
    """Pushes a release without trying it; gives its version back."""
    monkeypatch.setattr("serving.push.push", lambda folder, given, _: write_release(folder, given))
    return lambda: push_anywhere(REMOTE, parts).version


@pytest.fixture
def here(tmp_path):
    return tmp_path / "releases"


def run(here, *arguments, source=REMOTE):
    """Exit code, standard output and standard error."""
    result = invoke(fetch, "--from", source, "--releases", here, *arguments)
    return result.exit_code, result.stdout, result.stderr


def sleeps(monkeypatch, *actions):
    """Lets each pause of the command do something instead, one too many fails; the pauses."""
    left, slept = list(actions), []

    def sleep(seconds):
        slept.append(seconds)
        left.pop(0)()

    monkeypatch.setattr("serving.cli.fetch.time.sleep", sleep)
    return slept


def end(number=signal.SIGTERM):
    os.kill(os.getpid(), number)


def test_one_look_prints_one_line(push, here):
    version = push()
    assert run(here) == (0, f"release {version} -> {here / str(version)}\n", "")
    assert run(here, source=f"{REMOTE}/") == (0, f"release {version} is here already\n", "")
    assert versions(here) == [version]


def test_mistakes_exit_with_2_and_one_sentence(here, capsys):
    assert run_pebr("fetch", "--from", REMOTE, "--releases", here) == 2
    assert capsys.readouterr() == ("", EMPTY)
    assert not here.exists()
    # A mistake that no later look can mend ends the command even if it follows.
    with pytest.raises(UserError, match=r"^a remote folder of releases must be like gs://"):
        run(here, "--every", "1", source="gs:/bucket/releases")


def test_it_follows_what_is_pushed_until_a_signal(push, here, monkeypatch):
    pushed = [push()]
    slept = sleeps(
        monkeypatch, lambda: None, lambda: pushed.append(push()), lambda: end(signal.SIGINT)
    )
    code, output, errors = run(here, "--every", "60")
    assert output == "".join(f"release {each} -> {here / str(each)}\n" for each in pushed)
    assert (code, errors, slept) == (0, "", [60, 60, 60])
    assert versions(here) == pushed


def test_a_look_that_fails_is_one_line_and_the_next_one_tries_again(push, here, monkeypatch):
    pushed = []
    sleeps(monkeypatch, lambda: None, lambda: pushed.append(push()), end)
    code, output, errors = run(here, "--every", "1")
    assert (code, errors) == (0, EMPTY + EMPTY)
    assert output == f"release {pushed[0]} -> {here / str(pushed[0])}\n"


def test_a_signal_in_the_middle_leaves_no_half_release(push, here, monkeypatch):
    push()
    sleeps(monkeypatch)

    load = Release.load

    def interrupted(directory):
        assert load(directory)
        end()

    monkeypatch.setattr("pebr_tf.release.remote.Release.load", interrupted)
    assert run(here, "--every", "1") == (0, "", "")
    assert os.listdir(here) == []
