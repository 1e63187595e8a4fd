"""The latent catalogue: department > category > brand > model > item, and the items' attributes.

It is kept as numbers, about 20 bytes per item; `text.py` turns them into words.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pebr_tf.data.synthetic.shop import Shop, shop
from pebr_tf.data.synthetic.vocabulary import SERIES_PER_LINE, SLOTS, series_words

_ITEMS_PER_MODEL = 4.0
_LINE_SPREAD = 0.3  # Of the log-normal factor that lets one seed's lines differ from another's.
_POPULARITY_EXPONENT = 0.9
_NUMBERS = 99  # Model numbers run at least this far, and further when a line has more models.
# A prime beyond every product of series, suffixes and _NUMBERS: steps through all names of a line.
_NAME_STRIDE = 1_000_003


@dataclass(frozen=True)
class Catalogue:
    """The items (N) and models (M) of the shop; an array of models begins with `model_`.

    Attributes:
      line: Brand within category of each item, int16 [N].
      attributes: 1 + the number of the value, 0 for none, uint8 [SLOTS, N].
      popularity: Share of a catalogue-wide draw, Zipf over the items, float64 [N], sums to 1.
      model_series: Index into `series`, int32 [M].
      model_suffix: Index into `Shop.suffixes`, int16 [M].
      series: First words of the model names.
    """

    line: npt.NDArray[np.int16]
    model: npt.NDArray[np.int32]
    attributes: npt.NDArray[np.uint8]
    popularity: npt.NDArray[np.float64]
    model_line: npt.NDArray[np.int16]
    model_series: npt.NDArray[np.int32]
    model_number: npt.NDArray[np.int32]
    model_suffix: npt.NDArray[np.int16]
    series: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.line)

    def shop_part(self, name: str) -> npt.NDArray[np.integer]:
        """Number of each item's department, category, brand, line or model, [N]; 0 for the shop."""
        words = shop()
        category = words.line_category[self.line]
        return {
            "shop": np.zeros_like(self.line),
            "department": words.category_department[category],
            "category": category,
            "brand": words.line_brand[self.line],
            "line": self.line,
            "model": self.model,
        }[name]


def make_catalogue(items: int, generator: np.random.Generator) -> Catalogue:
    """Draws a catalogue in which no two items are equal."""
    words = shop()
    weight = words.line_weight * generator.lognormal(0.0, _LINE_SPREAD, len(words.line_weight))
    line_items = generator.multinomial(items, weight / weight.sum())
    line = np.repeat(np.arange(len(weight), dtype=np.int16), line_items)
    first, variant = _models(line, words, generator)
    model = np.cumsum(first, dtype=np.int32) - np.int32(1)
    model_line = line[first]
    attributes = _attributes(model_line, model, variant, words, generator)
    series, number, suffix = _names(model_line, words, generator)
    # Without this permutation, an item's id would reveal its category.
    order = generator.permutation(items)
    popularity = (1.0 + generator.permutation(items)) ** -_POPULARITY_EXPONENT
    return Catalogue(
        line=line[order],
        model=model[order],
        attributes=attributes[:, order],
        popularity=popularity / popularity.sum(),
        model_line=model_line,
        model_series=series,
        model_number=number,
        model_suffix=suffix,
        series=series_words(generator),
    )


def _models(
    line: npt.NDArray[np.int16], words: Shop, generator: np.random.Generator
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int32]]:
    """Cuts the items, sorted by line, into models: whether it is the first, and its number, [N]."""
    position = np.arange(len(line), dtype=np.int32)
    first = generator.random(len(line), dtype=np.float32) < 1.0 / _ITEMS_PER_MODEL
    first[0] = True
    first[1:] |= line[1:] != line[:-1]
    variant = position - np.maximum.accumulate(np.where(first, position, 0))
    # A model that has used all its combinations of attributes is followed by a new one.
    variant %= words.line_variants[line]
    return variant == 0, variant


def _attributes(
    model_line: npt.NDArray[np.int16],
    model: npt.NDArray[np.int32],
    variant: npt.NDArray[np.int32],
    words: Shop,
    generator: np.random.Generator,
) -> npt.NDArray[np.uint8]:
    """Draws the model's values and counts through the rest; returns [SLOTS, N]."""
    model_category = words.line_category[model_line]
    attributes = np.empty((SLOTS, len(model)), np.uint8)
    for slot in range(SLOTS):
        values = words.slot_values[model_category, slot].astype(np.int32)
        present = generator.random(len(values)) < words.slot_share[model_category, slot]
        # The square favours the values that the vocabulary names first.
        base = (values * generator.random(len(values)) ** 2).astype(np.int32)
        stride = words.slot_stride[model_category, slot]
        step = np.where(stride[model] > 0, variant // np.maximum(stride, 1)[model], 0)
        code = 1 + (base[model] + step) % np.maximum(values, 1)[model]
        attributes[slot] = np.where(present[model], code, 0)
    return attributes


def _names(
    model_line: npt.NDArray[np.int16], words: Shop, generator: np.random.Generator
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int16]]:
    lines = len(words.line_weight)
    suffixes = words.suffixes_per_department
    line_models = np.bincount(model_line, minlength=lines)
    spellings = SERIES_PER_LINE * suffixes
    names = spellings * np.maximum(_NUMBERS, -(-line_models // spellings))
    offset = (generator.random(lines) * names).astype(np.int64)
    line_start = np.cumsum(line_models) - line_models
    rank = np.arange(len(model_line), dtype=np.int64) - line_start[model_line]
    name = (offset[model_line] + rank * _NAME_STRIDE) % names[model_line]
    series = model_line.astype(np.int64) * SERIES_PER_LINE + name % SERIES_PER_LINE
    department = words.category_department[words.line_category[model_line]]
    suffix = department * suffixes + name // SERIES_PER_LINE % suffixes
    number = 1 + name // spellings
    return series.astype(np.int32), number.astype(np.int32), suffix.astype(np.int16)
