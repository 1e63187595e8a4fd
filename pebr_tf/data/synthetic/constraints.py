"""The constraints of queries, as numbers."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pebr_tf.data.synthetic.catalogue import Catalogue
from pebr_tf.data.synthetic.levels import LEVELS, Base
from pebr_tf.data.synthetic.shop import shop


@dataclass(frozen=True)
class Constraints:
    """The constraints of the queries (Q); an item is relevant if it meets all of its query's.

    Attributes:
      level: Index into `LEVELS`, int8 [Q].
      base: Number of the department, category, brand, line or model, int32 [Q].
      values: Required attribute values, as numbered in `Shop`, -1 for none, int16 [Q, 2].
    """

    level: npt.NDArray[np.int8]
    base: npt.NDArray[np.int32]
    values: npt.NDArray[np.int16]

    def __len__(self) -> int:
        """Returns the number of queries."""
        return len(self.level)

    @property
    def department(self) -> npt.NDArray[np.int32]:
        """Department that each query names, -1 for none, int32 [Q]."""
        return self._named(Base.DEPARTMENT)

    @property
    def category(self) -> npt.NDArray[np.int32]:
        """Category that each query names, -1 for none, int32 [Q]."""
        line = self._named(Base.LINE)
        return np.where(line >= 0, shop().line_category[line], self._named(Base.CATEGORY))

    @property
    def model(self) -> npt.NDArray[np.int32]:
        """Model that each query names, -1 for none, int32 [Q]."""
        return self._named(Base.MODEL)

    def brand(self, catalogue: Catalogue) -> npt.NDArray[np.int32]:
        """Brand that each query names, -1 for none, int32 [Q]; a model is named with its brand."""
        model, line = self.model, self._named(Base.LINE)
        line = np.where(model >= 0, catalogue.model_line[model], line)
        return np.where(line >= 0, shop().line_brand[line], self._named(Base.BRAND))

    def _named(self, base: Base) -> npt.NDArray[np.int32]:
        has_base = np.array([level.base is base for level in LEVELS])
        return np.where(has_base[self.level], self.base, np.int32(-1))
