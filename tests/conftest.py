"""Keras 2 is chosen before any test module imports TensorFlow; how workers share the tests."""

import contextlib
import gc

import pytest
from xdist.scheduler import LoadScopeScheduling

from pebr_tf.errors import UserError

SLOW_AS_A_WHOLE = "\npytestmark = pytest.mark.slow\n"
# They share the process that others are forked from (`forked`), and those of e2e a run.
FORKING = (
    *("tests/e2e/", "tests/pipeline/test_trainer.py"),
    *("tests/pebr_tf/training/test_loop.py", "tests/pebr_tf/training/test_worker_training.py"),
)


def pytest_ignore_collect(collection_path, config):
    """A file that is slow as a whole is not imported only to be deselected."""
    if config.option.markexpr.startswith("not slow") and collection_path.suffix == ".py":
        return SLOW_AS_A_WHOLE in collection_path.read_text("utf-8") or None
    return None


def pytest_collection_modifyitems(items):
    """Files that take long come first, so that the workers end at about the same time."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (not item.nodeid.startswith(FORKING), item.path not in slow))


def pytest_collection_finish():
    # Arrow 10 looks through all objects for each CSV block; those of the libraries are left out.
    gc.freeze()


@pytest.fixture(scope="session")
def scann_op():
    """Skips the test where no TensorFlow can load ScaNN's op."""
    from pebr_tf.errors import UserError
    from pebr_tf.libraries import scann_op

    try:
        return scann_op()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture
def memory_store(monkeypatch):
    """Makes ram:// an object store, empty before and after; see `MemoryStore`."""
    import tensorflow as tf
    from memory_store import MemoryStore

    from pebr_tf import storage

    store = MemoryStore()
    found = storage.file_system_of

    def chosen(scheme):
        return store.file_system if scheme == "ram" else found(scheme)

    monkeypatch.setattr(storage, "file_system_of", chosen)
    tf.io.gfile.makedirs("ram://bucket")
    yield store
    # If the name of one folder begins with that of another, TensorFlow fails to find the second.
    with contextlib.suppress(tf.errors.NotFoundError):
        tf.io.gfile.rmtree("ram://bucket")
    assert not tf.io.gfile.exists("ram://bucket")


@pytest.fixture
def rejection():
    """A function that returns the sentence with which a call is rejected."""

    def rejected(function, *arguments, **keywords):
        with pytest.raises(UserError) as caught:
            function(*arguments, **keywords)
        return str(caught.value)

    return rejected


class FileScheduling(LoadScopeScheduling):
    """All tests of a file go to one worker, which makes their fixtures once."""

    def _split_scope(self, nodeid):
        return "forking" if nodeid.startswith(FORKING) else nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False
    return FileScheduling(config, log)
