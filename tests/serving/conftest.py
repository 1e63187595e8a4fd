"""The tiny release: its towers, vectors, parts, and the whole of it loaded."""

import pytest
from tiny_release import item_ids as tiny_item_ids
from tiny_release import item_vectors, write_parts, write_towers

from pebr_tf.release.catalogue import Moments
from pebr_tf.release.release import find_release, write_release
from serving.retriever import Retriever


@pytest.fixture
def anyio_backend():
    """Runs the tests that are coroutines, which are marked anyio, in asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def tower_files(tmp_path_factory):
    """A folder with the towers, and the module that was saved there."""
    folder = tmp_path_factory.mktemp("towers")
    return folder / "model", write_towers(folder / "model", folder / "vocabulary")


@pytest.fixture(scope="session")
def vectors(tower_files):
    return item_vectors(tower_files[1])


@pytest.fixture(scope="session")
def item_ids():
    return tiny_item_ids()


@pytest.fixture(scope="session")
def moments(vectors):
    return Moments.of(vectors)


@pytest.fixture(scope="session")
def parts(tmp_path_factory, tower_files):
    """All that a release is made of, as the components leave it; the evaluation has no examples."""
    return write_parts(tmp_path_factory.mktemp("parts"), *tower_files)


@pytest.fixture(scope="session")
def releases(tmp_path_factory, parts):
    """A folder with one release; do not write to it."""
    folder = tmp_path_factory.mktemp("releases")
    write_release(folder, parts)
    return folder


@pytest.fixture(scope="session")
def retriever(releases):
    return Retriever.load(find_release(releases))
