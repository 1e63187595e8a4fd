"""The embedded catalogue: the item vectors and everything that is made from them.

    index/             the folder that `pebr_tf.retrieval.load_index` opens
    payload.parquet    item_id and the columns to answer with, sorted by item_id
    moments.npz        mean and covariance of the item vectors
    vectors.npy        [N, n] float32 unit vectors, in the order of the ids
    ids.npy            [N] text, ascending

A release holds the first three.
"""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pebr_tf.errors import UserError
from pebr_tf.release.payload import ID_COLUMN

_BLOCK = 65_536
_INDEX, _PAYLOAD, _MOMENTS = "index", "payload.parquet", "moments.npz"
_VECTORS, _IDS = "vectors.npy", "ids.npy"


@dataclass(frozen=True)
class Moments:
    """The first two moments of the unit item vectors of an index, in float64.

    The mean is [n], the covariance [n, n].
    """

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray) -> Moments:
        dimension = vectors.shape[1]
        mean = vectors.mean(axis=0, dtype=np.float64)
        covariance = np.zeros((dimension, dimension))
        for begin in range(0, len(vectors), _BLOCK):
            centred = vectors[begin : begin + _BLOCK] - mean
            covariance += centred.T @ centred
        return cls(mean, covariance / len(vectors))

    @classmethod
    def load(cls, path: Path) -> Moments:
        try:
            with np.load(path) as arrays:
                return cls(arrays["mean"], arrays["covariance"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(
                f"{path} must be an .npz file of mean and covariance. Received: {error}."
            ) from None

    def save(self, path: Path) -> None:
        np.savez(path, mean=self.mean, covariance=self.covariance)

    def fingerprint(self) -> str:
        """SHA-256 over all numbers.

        Towers that differ in one weight, or catalogues that differ in one item, give different
        moments. A query model stores this digest to identify the index that it was made with.
        """
        digest = hashlib.sha256()
        for array in (self.mean, self.covariance):
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class EmbeddedCatalogue:
    """The folder of an embedded catalogue, or the part of it that a release holds."""

    SERVED: ClassVar[tuple[str, ...]] = (_INDEX, _PAYLOAD, _MOMENTS)

    directory: Path

    @classmethod
    def save(cls, directory: Path, items: pa.Table, vectors: np.ndarray) -> EmbeddedCatalogue:
        """Writes everything but the index.

        `items` [N] have item_id, ascending, and the payload columns; `vectors` [N, n] are unit.
        """
        catalogue = cls(directory)
        np.save(directory / _IDS, np.array(items[ID_COLUMN].to_pylist(), str))
        np.save(directory / _VECTORS, vectors)
        pq.write_table(items, catalogue.payload)
        Moments.of(vectors).save(directory / _MOMENTS)
        return catalogue

    @property
    def index(self) -> Path:
        return self.directory / _INDEX

    @property
    def payload(self) -> Path:
        """The file that `pebr_tf.release.payload.Payload.load` reads."""
        return self.directory / _PAYLOAD

    def moments(self) -> Moments:
        """Mean and covariance of the vectors; UserError if they cannot be read."""
        return Moments.load(self.directory / _MOMENTS)

    def vectors(self) -> np.ndarray:
        """[N, n] float32 unit vectors."""
        return _array(self.directory / _VECTORS)

    def ids(self) -> np.ndarray:
        """[N] item ids, ascending."""
        return _array(self.directory / _IDS)


def _array(path: Path) -> np.ndarray:
    try:
        return np.load(path)
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{path} must be an .npy file. Received: {error}.") from None
