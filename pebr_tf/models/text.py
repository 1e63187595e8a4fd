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
Japanese kana, Thai, Lao, Khmer, Burmese) give a word a character, so that word n-grams are their
character n-grams.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Sequence
from typing import Any

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


def tokens_of(texts: tf.Tensor, features: Features) -> tf.RaggedTensor:
    """Tokens [B, (T)] of texts [B]: word n-grams, then character n-grams, at least one.

    A character n-gram is made of a word between two marks, as in DSSM: `cat` gives #^c, #ca, #at
    and #t$ for n = 2. The # tells it from the word of the same letters. Words of one character
    give none. Tokens beyond `features.max_tokens` are left out: the characters go first.
    """
    words = words_of(texts, features.lowercase)
    parts = [tf.strings.ngrams(words, size, separator=" ") for size in features.word_ngrams]
    parts += _character_ngrams(words, features.character_ngrams)
    tokens = tf.concat(parts, axis=1)[:, : features.max_tokens]
    return tf.concat([tokens, _where_empty(tokens)], axis=1)


def words_of(texts: tf.Tensor, lowercase: bool = True) -> tf.RaggedTensor:
    """Words [B, (W)] of texts [B]; invalid UTF-8 becomes U+FFFD, which is no letter."""
    spaced = tf.strings.regex_replace(normalised(texts, lowercase), _UNSPACED, r" \1 ")
    return tf.strings.split(tf.strings.regex_replace(spaced, r"[^\p{L}\p{M}\p{N}]+", " "))


def normalised(texts: tf.Tensor, lowercase: bool = True) -> tf.Tensor:
    """Texts [B] in the one form that stands for all ways to write them; see the top."""
    points = tf.strings.unicode_decode(texts, "UTF-8")
    table = tf.constant(_folding(lowercase))
    values = points.flat_values
    folded = tf.where(
        values < _TABLE_SIZE, tf.gather(table, tf.minimum(values, _TABLE_SIZE - 1)), values
    )
    points = _without_dropped(points.with_flat_values(folded))
    # Twice: a Hangul syllable may have three letters.
    points = _joined(_joined(points, lowercase), lowercase)
    return tf.strings.unicode_encode(points, "UTF-8")


def _without_dropped(points: tf.RaggedTensor) -> tf.RaggedTensor:
    return tf.ragged.boolean_mask(points, points.with_flat_values(points.flat_values != _DROPPED))


def _joined(points: tf.RaggedTensor, lowercase: bool) -> tf.RaggedTensor:
    """Code points [B, (C)] with each pair that Unicode has a single one for as that one."""
    keys, joined = map(tf.constant, _pairs(lowercase))
    values, rows = points.flat_values, points.value_rowids()
    # Most texts have none of these, and so the search below nothing to do.
    is_second = tf.constant(_is_second())
    places = tf.where(tf.gather(is_second, tf.minimum(values, _TABLE_SIZE - 1)))
    before = tf.maximum(places - 1, 0)
    pairs = _key(tf.gather_nd(values, before), tf.gather_nd(values, places))
    found = tf.minimum(tf.searchsorted(keys, pairs), len(_pairs(lowercase)[0]) - 1)
    same_row = tf.gather_nd(rows, before) == tf.gather_nd(rows, places)
    fits = (tf.gather(keys, found) == pairs) & same_row & (places[:, 0] > 0)
    changed = tf.concat([before[fits], places[fits]], axis=0)
    singles = tf.gather(joined, found)[fits]
    updates = tf.concat([singles, tf.zeros_like(singles)], axis=0)
    values = tf.tensor_scatter_nd_update(values, changed, updates)
    return _without_dropped(points.with_flat_values(values))


def _character_ngrams(words: tf.RaggedTensor, sizes: Sequence[int]) -> list[tf.RaggedTensor]:
    """[B, (T)] for each size; a word that the batch has often is cut once."""
    different, places = tf.unique(words.flat_values)
    marked = tf.strings.join(["^", different, "$"])
    longer = tf.strings.length(different, unit="UTF8_CHAR") > 1
    # A word of one character has no letters here, and so no n-grams.
    letters = tf.strings.unicode_split(tf.where(longer, marked, ""), "UTF-8")
    parts = []
    for size in sizes:
        grams = tf.strings.ngrams(letters, size, separator="")
        grams = grams.with_flat_values(tf.strings.join(["#", grams.flat_values]))
        parts.append(words.with_flat_values(tf.gather(grams, places)).merge_dims(1, 2))
    return parts


def _where_empty(tokens: tf.RaggedTensor) -> tf.RaggedTensor:
    """[B, (0 or 1)], the one token of the rows that have none."""
    lengths = tf.cast(tokens.row_lengths() == 0, tokens.row_splits.dtype)
    fill = tf.fill([tf.reduce_sum(lengths)], EMPTY)
    return tf.RaggedTensor.from_row_lengths(fill, lengths, validate=False)


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
    """[65,536] code points that stand for those of the basic plane; 0 drops one."""
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
