"""Mean and covariance of the item vectors: the corpus background, and what an index is known by."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pebr_tf.errors import UserError


@dataclass(frozen=True)
class Moments:
    """The first two moments of the unit item vectors of an index.

    Attributes:
      mean: [n].
      covariance: [n, n].
    """

    mean: np.ndarray
    covariance: np.ndarray

    @classmethod
    def load(cls, path: Path) -> Moments:
        """The moments in an .npz file.

        Raises:
          UserError: No such file, or one that does not hold `mean` [n] and `covariance` [n, n].
        """
        try:
            with np.load(path) as arrays:
                moments = cls(arrays["mean"], arrays["covariance"])
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise UserError(
                f"{path} must be an .npz file of mean and covariance. Received: {error}."
            ) from None
        size = moments.mean.shape[0] if moments.mean.ndim == 1 else -1
        if moments.covariance.shape != (size, size):
            raise UserError(
                f"{path} must hold mean [n] and covariance [n, n]. Received: "
                f"{moments.mean.shape} and {moments.covariance.shape}."
            )
        return moments

    def fingerprint(self) -> str:
        """SHA-256 over all numbers.

        Towers that differ in one weight, or a catalogue that differs in one item, give other
        moments: a query model keeps this digest to know the index that it was made with.
        """
        digest = hashlib.sha256()
        for array in (self.mean, self.covariance):
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()
