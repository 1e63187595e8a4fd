"""From text to tokens, in TensorFlow's own ops: the graph that trains is the graph that serves.

Normalisation is a table of code points made of Python's `unicodedata`, because TensorFlow has no
NFKC of its own and a custom op would not load in a stock TF Serving:

    width and compatibility forms   ｉＰｈｏｎｅ -> iphone, ㎏ stays (it is more than one letter)
    case                            Ä -> ä, unless told to keep it
    accents                         é, e + U+0301 -> e; only Latin, Greek and Cyrillic letters
    other marks                     joined to their letters: か + U+3099, half-width ｶﾞ -> が, ガ;
                                    Hangul letters to syllables
    invisible characters            dropped (zero width, variants of a glyph) or a space (control)

Words are runs of letters, marks and digits. Scripts that are written without spaces (Chinese,
Japanese kana, Thai, Lao, Khmer, Burmese) give one word per character, so that word n-grams are
their character n-grams.
"""

import functools
import unicodedata
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from pebr_tf.config import Features

# What a text without a word becomes, so that its vector is one that training has seen.
EMPTY = "#"
_TABLE_SIZE = 0x10000
_COMBINING = range(0x300, 0x370)
_VARIANTS = range(0xFE00, 0xFE10)
_DROPPED, _SPACE = 0, 0x20
# The long vowel ー belongs to both kana, and so to no script.
_UNSPACED = r"([\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]\p{M}*)"


class _Rows(NamedTuple):
    """Rows of different lengths; those of row i are at splits[i] to splits[i + 1].

    What `tf.RaggedTensor` is, whose functions make dozens of small operations each. A query is
    encoded by itself: the number of operations is what it costs.
    """

    values: tf.Tensor
    splits: tf.Tensor

    def ragged(self) -> tf.RaggedTensor:
        """The same for TensorFlow."""
        return tf.RaggedTensor.from_row_splits(self.values, self.splits, validate=False)


def tokens_of(texts: tf.Tensor, features: Features) -> tf.RaggedTensor:
    """Tokens [B, (T)] of texts [B]: word n-grams, then character n-grams, at least one.

    A character n-gram is made of a word between two marks, as in DSSM: `cat` gives #^c, #ca, #at
    and #t$ for n = 2. The # tells it from the word of the same letters. Words of one character
    give none. Tokens beyond `features.max_tokens` are left out: the characters go first. So are
    characters beyond `features.characters`, before anything is made of them.
    """
    texts = tf.strings.substr(texts, 0, features.characters, unit="UTF8_CHAR")
    words = _words(texts, features.lowercase)
    parts = [_ngrams(words, size, " ") for size in features.word_ngrams]
    parts += _character_ngrams(words, features.character_ngrams)
    return _side_by_side(parts, features.max_tokens).ragged()


def normalised(texts: tf.Tensor, lowercase: bool = True) -> tf.Tensor:
    """Texts [B] in normal form; the module docstring has the rules."""
    points = _decode(texts)
    table = tf.constant(_folding(lowercase))
    values = points.values
    folded = tf.where(
        values < _TABLE_SIZE, tf.gather(table, tf.minimum(values, _TABLE_SIZE - 1)), values
    )
    points = _without_dropped(_Rows(folded, points.splits))
    points = _Rows(
        *tf.cond(
            # Most texts have none of these.
            tf.reduce_any(_is_joinable(points.values)),
            # Twice: a Hangul syllable may have three letters.
            lambda: tuple(_joined(_joined(points, lowercase), lowercase)),
            lambda: tuple(points),
        )
    )
    return _encode(points)


def _words(texts: tf.Tensor, lowercase: bool) -> _Rows:
    spaced = tf.strings.regex_replace(normalised(texts, lowercase), _UNSPACED, r" \1 ")
    plain = tf.strings.regex_replace(spaced, r"[^\p{L}\p{M}\p{N}]+", " ")
    found = tf.raw_ops.StringSplitV2(input=plain, sep="")
    count = tf.cast(tf.shape(texts)[0], tf.int64)
    rows, ends = found.indices[:, 0], tf.range(count + 1)
    return _Rows(found.values, tf.searchsorted(rows, ends, out_type=tf.int64))


def _decode(texts: tf.Tensor) -> _Rows:
    """Code points of texts [B]."""
    decoded = tf.raw_ops.UnicodeDecode(input=texts, input_encoding="UTF-8")
    return _Rows(decoded.char_values, decoded.row_splits)


def _encode(points: _Rows) -> tf.Tensor:
    """Texts [B] of code points."""
    return tf.raw_ops.UnicodeEncode(
        input_values=points.values, input_splits=points.splits, output_encoding="UTF-8"
    )


def _without_dropped(points: _Rows) -> _Rows:
    kept = points.values != _DROPPED
    before = tf.pad(tf.cumsum(tf.cast(kept, points.splits.dtype)), [[1, 0]])
    return _Rows(tf.gather(points.values, tf.where(kept)[:, 0]), tf.gather(before, points.splits))


def _is_joinable(values: tf.Tensor) -> tf.Tensor:
    """Whether code points [N] join with ones before them."""
    return tf.gather(tf.constant(_is_second()), tf.minimum(values, _TABLE_SIZE - 1))


def _joined(points: _Rows, lowercase: bool) -> _Rows:
    """Code points in which every pair that Unicode can compose is composed."""
    keys, joined = map(tf.constant, _pairs(lowercase))
    values = points.values
    places = tf.where(_is_joinable(values))
    before = tf.maximum(places - 1, 0)
    pairs = _key(tf.gather_nd(values, before), tf.gather_nd(values, places))
    found = tf.minimum(tf.searchsorted(keys, pairs), len(_pairs(lowercase)[0]) - 1)
    rows_before, rows = (
        tf.searchsorted(points.splits, each[:, 0], side="right") for each in (before, places)
    )
    fits = (tf.gather(keys, found) == pairs) & (rows_before == rows) & (places[:, 0] > 0)
    changed = tf.concat([before[fits], places[fits]], axis=0)
    singles = tf.gather(joined, found)[fits]
    updates = tf.concat([singles, tf.zeros_like(singles)], axis=0)
    values = tf.tensor_scatter_nd_update(values, changed, updates)
    return _without_dropped(_Rows(values, points.splits))


def _ngrams(words: _Rows, size: int, separator: str) -> _Rows:
    made = tf.raw_ops.StringNGrams(
        data=words.values,
        data_splits=words.splits,
        separator=separator,
        ngram_widths=[size],
        left_pad="",
        right_pad="",
        pad_width=0,
        preserve_short_sequences=False,
    )
    return _Rows(made.ngrams, made.ngrams_splits)


def _character_ngrams(words: _Rows, sizes: Sequence[int]) -> list[_Rows]:
    """For each size; a word that the batch has often is cut once."""
    if not sizes:
        return []
    different, places = tf.unique(words.values)
    marked = tf.strings.join(["^", different, "$"])
    longer = tf.strings.length(different, unit="UTF8_CHAR") > 1
    # A word of one character has no letters here, and so no n-grams.
    points = _decode(tf.where(longer, marked, ""))
    one_each = tf.range(tf.size(points.values, tf.int64) + 1)
    letters = _Rows(_encode(_Rows(points.values, one_each)), points.splits)
    parts = []
    for size in sizes:
        grams = _ngrams(letters, size, "")
        taken = tf.raw_ops.RaggedGather(
            params_nested_splits=[grams.splits],
            params_dense_values=tf.strings.join(["#", grams.values]),
            indices=places,
            OUTPUT_RAGGED_RANK=1,
        )
        splits = tf.gather(taken.output_nested_splits[0], words.splits)
        parts.append(_Rows(taken.output_dense_values, splits))
    return parts


def _side_by_side(parts: Sequence[_Rows], most: int) -> _Rows:
    """Row by row the tokens of each part in turn, `most` of them; EMPTY where there are none."""
    lengths = tf.stack([part.splits[1:] - part.splits[:-1] for part in parts], axis=1)
    ends = tf.minimum(tf.cumsum(lengths, axis=1), most)
    empty = tf.cast(ends[:, -1:] == 0, tf.int64)
    kept = tf.concat([ends[:, :1], ends[:, 1:] - ends[:, :-1], empty], axis=1)
    # Where the pieces [B, P + 1] begin among all values, EMPTY being the last of them.
    sizes = tf.stack([tf.size(part.values, tf.int64) for part in parts])
    begins = tf.stack([part.splits[:-1] for part in parts], axis=1)
    begins = tf.concat([begins, tf.zeros_like(empty)], axis=1)
    begins = tf.reshape(begins + tf.pad(tf.cumsum(sizes), [[1, 0]]), [-1])
    pieces = tf.pad(tf.cumsum(tf.reshape(kept, [-1])), [[1, 0]])
    places = tf.range(pieces[-1])
    piece = tf.searchsorted(pieces, places, side="right") - 1
    values = tf.concat([*(part.values for part in parts), [EMPTY]], axis=0)
    values = tf.gather(values, places + tf.gather(begins - pieces[:-1], piece))
    return _Rows(values, pieces[:: len(parts) + 1])


@functools.lru_cache(maxsize=2)
def _pairs(lowercase: bool) -> tuple[np.ndarray, np.ndarray]:
    """Keys of the pairs that are one code point, rising, and these code points, folded."""
    pairs = {}
    for point in range(_TABLE_SIZE):
        parts = unicodedata.normalize("NFD", chr(point))
        first, second = unicodedata.normalize("NFC", parts[:-1]), parts[-1]
        if len(first) == 1 and unicodedata.normalize("NFC", first + second) == chr(point):
            pairs[_key(ord(first), ord(second))] = _folded(point, lowercase)
    keys = sorted(key for key in pairs if key % _TABLE_SIZE not in _COMBINING)
    return np.array(keys, np.int64), np.array([pairs[key] for key in keys], np.int32)


@functools.lru_cache(maxsize=1)
def _is_second() -> np.ndarray:
    """[65,536] booleans, of the code points that join with one before them."""
    return np.isin(np.arange(_TABLE_SIZE), _pairs(True)[0] % _TABLE_SIZE)


def _key(first: Any, second: Any) -> Any:
    if isinstance(first, tf.Tensor):
        first, second = tf.cast(first, tf.int64), tf.cast(second, tf.int64)
    return first * _TABLE_SIZE + second


@functools.lru_cache(maxsize=2)
def _folding(lowercase: bool) -> np.ndarray:
    """[65,536] the folded form of each code point of the basic plane; 0 drops it."""
    return np.array([_folded(point, lowercase) for point in range(_TABLE_SIZE)], np.int32)


def _folded(point: int, lowercase: bool) -> int:
    if point in _COMBINING:
        return _DROPPED
    character = chr(point)
    category = unicodedata.category(character)
    if category in ("Cc", "Cs", "Zl", "Zp"):
        return _SPACE
    if category == "Cf" or point in _VARIANTS:
        return _DROPPED
    for form in (unicodedata.normalize("NFKC", character), character):
        # The folded case also makes one of σ and ς; of ß it makes two letters.
        form = min(form.casefold(), form.lower(), key=len) if lowercase else form
        base = "".join(c for c in unicodedata.normalize("NFD", form) if ord(c) not in _COMBINING)
        if len(base) == 1:
            return ord(base)
        if len(form) == 1:
            return ord(form)
    return point
