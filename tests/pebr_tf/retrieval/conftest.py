"""Small indexes that the tests of retrieval share; each is built once, when first asked for."""

import dataclasses
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

from pebr_tf.config import Index
from pebr_tf.retrieval import ExactSearcher, build_index, load_index


@dataclasses.dataclass(frozen=True)
class Sample:
    """Vectors [N, n] and ids [N], the ScaNN index of them in a folder, and the exact searcher."""

    directory: Path
    manifest: dict
    vectors: np.ndarray
    ids: np.ndarray

    @cached_property
    def searcher(self):
        return load_index(self.directory)

    @cached_property
    def everywhere(self):
        """The index that looks into every leaf, and at every item there."""
        tuning = dataclasses.replace(self.searcher.tuning, min_leaves=10**9, margin=3.0)
        return self.searcher.with_tuning(tuning)

    @cached_property
    def exact(self):
        return ExactSearcher(self.vectors, self.ids)

    def queries(self, count, seed):
        """[count, n] a third each of random directions, items, and items with noise."""
        generator = np.random.default_rng(seed)
        noise = generator.normal(size=(count, self.vectors.shape[1]))
        items = self.vectors[generator.integers(len(self.vectors), size=count)]
        items = items / np.linalg.norm(items, axis=1, keepdims=True)
        share = np.resize([[0.0, 1.0], [1.0, 0.0], [1.0, 0.5 / noise.shape[1] ** 0.5]], (count, 2))
        return share[:, :1] * items + share[:, 1:] * noise


def clustered(size, dimension, seed):
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(12, dimension))
    spread = generator.uniform(0.2, 1, (size, 1))
    return centres[generator.integers(12, size=size)] + spread * generator.normal(
        size=(size, dimension)
    )


def numbers(size):
    return np.random.default_rng(size).permutation(3 * size)[:size] - size


def texts(size):
    return np.array([f"item {number}" for number in numbers(size)])


# Vectors and ids by name; every one is too small to need ScaNN, and gets it all the same.
CORPORA = {
    "plane": lambda: (clustered(256, 2, 0), numbers(256)),
    "text ids": lambda: (clustered(1_000, 16, 1), texts(1_000)),
    "many": lambda: (clustered(3_000, 32, 2), numbers(3_000)),
    "long vectors": lambda: (clustered(300, 256, 3), numbers(300)),
    "duplicates": lambda: (np.repeat(clustered(100, 8, 4), 6, axis=0), texts(600)),
    "antipodal": lambda: (np.concatenate([half := clustered(300, 8, 5), -half]), numbers(600)),
    "identical": lambda: (np.ones((300, 8)), numbers(300)),
}


@pytest.fixture(scope="session")
def sample_of(tmp_path_factory):
    """A function from the name of a corpus to its `Sample`."""
    made = {}

    def make(name):
        if name not in made:
            directory = tmp_path_factory.mktemp("index") / name
            vectors, ids = CORPORA[name]()
            manifest = build_index(directory, vectors, ids, Index(exact_below=0, check_recall=0.9))
            made[name] = Sample(directory, manifest, vectors, ids)
        return made[name]

    return make
