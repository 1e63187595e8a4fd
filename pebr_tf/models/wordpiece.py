"""BERT's tokens in TensorFlow's own ops, the same as those of the package `tokenizers`.

The text is cleaned, each Chinese character and each punctuation mark becomes a word, accents go and
letters become small: one table of code points says what each becomes. A word is then cut from the
left into the longest pieces that the vocabulary has. All substrings of the different words of a
batch are looked up at once, and a loop follows the longest ones from piece to piece.

One step of the reference is left out, because it changes no id: it sorts marks of one letter that
are not accents, and a word with two of those is in no vocabulary.
"""

import functools
import unicodedata
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from pebr_tf.models.bert_folder import CLS, SEP, UNK, BertFolder
from pebr_tf.models.text import RaggedRows, decode, encode

MAX_WORD = 100
# Tokens that a text may name. Code points for private use stand for them until they are looked up.
_NAMED = (CLS, SEP, UNK, "[PAD]", "[MASK]")
_PRIVATE = 0x10FF00
_POINTS, _PAGE = 0x110000, 256
# Rows of the table: nothing, a space, the character itself, the same as a word; then sequences.
_DROPPED, _SPACE, _SELF, _WORD = range(4)
_ITSELF = -1
_CHINESE = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)
# Marks and punctuation newer than Unicode 8, which the reference takes for letters.
_NEWER = (
    "7FD 8D3-8E2 9FD-9FE A76 AFA-AFF B55 C04 C77 C84 D00 D3B-D3C D81 EBA 1885-1886 1ABF-1AC0 "
    "1DF6-1DFB 2E43-2E52 A82C A8C5 A8FF A9BD 10D24-10D27 10EAB-10F59 110CD 111CF 1123E 1133B "
    "11438-1145E 11660-1166C 1182F-1183B 11938-11FFF 13430-13438 16E97-16E9A 16F4F 16FE2-16FE4 "
    "1E000-1E2EF 1E944-1E95F"
)
_HANGUL = range(0xAC00, 0xD7A4)
# Characters that were punctuation in Unicode 8 and are not in later versions.
_PUNCTUATION = (0x166D, 0x111C9)


class WordPiece(tf.Module):
    """Turns texts into ids of a vocabulary."""

    def __init__(self, folder: BertFolder, max_length: int):
        """Makes the tables; a text has at most `max_length` tokens, with its first and its last."""
        super().__init__(name="word_piece")
        ids = {piece: place for place, piece in enumerate(folder.vocabulary)}
        self._most = max_length - 2
        self._cls, self._sep, self._unknown = (ids[piece] for piece in (CLS, SEP, UNK))
        self._named = [name for name in _NAMED if name in ids]
        own = {chr(_PRIVATE + place): ids[name] for place, name in enumerate(self._named)}
        first = {piece: ids[piece] for piece in ids if not piece.startswith("##")}
        # A table must have an entry, and no substring is empty.
        further = {piece[2:]: ids[piece] for piece in ids if piece[:2] == "##"} | {"": -1}
        # A text may have these characters themselves.
        first |= {piece: ids[piece] for piece in ("##",) if piece in ids} | own
        self._longest = max(map(len, (*first, *further)))
        self._first, self._further = _table(first), _table(further)
        pages, of_page, splits, values = _becomes(
            folder.lowercase, folder.strip_accents, folder.split_chinese
        )
        # Variables: constants would be stored in the graph of every signature.
        self._pages, self._of_page, self._splits, self._values = (
            tf.Variable(each, trainable=False) for each in (pages, of_page, splits, values)
        )

    def __call__(self, texts: tf.Tensor) -> tf.RaggedTensor:
        """Ids [B, (T)] int32 of texts [B], with [CLS] before and [SEP] after them."""
        words, rows = self._words(texts)
        count = tf.shape(texts, tf.int64)[0]
        splits = tf.searchsorted(rows, tf.range(count + 1), out_type=tf.int64)
        # Each word is a token or more.
        kept = tf.range(tf.size(rows, tf.int64)) - tf.gather(splits, rows) < self._most
        words, rows = tf.boolean_mask(words, kept), tf.boolean_mask(rows, kept)
        splits = tf.searchsorted(rows, tf.range(count + 1), out_type=tf.int64)
        different, places = tf.unique(words, tf.int64)
        pieces = _taken(self._pieces(different), places)
        return self._framed(RaggedRows(pieces.values, tf.gather(pieces.splits, splits)))

    def _words(self, texts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The words [W] of normalised texts [B], and the row of each."""
        private = f"[{chr(_PRIVATE)}-{chr(_PRIVATE + 127)}]"
        texts = tf.strings.regex_replace(texts, private, "")
        for place, name in enumerate(self._named):
            pattern = name.replace("[", r"\[").replace("]", r"\]")
            texts = tf.strings.regex_replace(texts, pattern, chr(_PRIVATE + place))
        points = decode(texts)
        page = tf.gather(self._of_page, points.values // _PAGE)
        becomes = tf.gather(self._pages, page * _PAGE + points.values % _PAGE)
        made = _taken(RaggedRows(self._values.read_value(), self._splits.read_value()), becomes)
        itself = tf.repeat(points.values, made.splits[1:] - made.splits[:-1])
        values = tf.where(made.values == _ITSELF, itself, made.values)
        normalised = encode(RaggedRows(values, tf.gather(made.splits, points.splits)))
        found = tf.raw_ops.StringSplitV2(input=normalised, sep=" ")
        # Between two spaces there is an empty word.
        filled = found.values != ""
        return tf.boolean_mask(found.values, filled), tf.boolean_mask(found.indices[:, 0], filled)

    def _pieces(self, words: tf.Tensor) -> RaggedRows:
        """Ids of the pieces of different words [U]."""
        sizes = tf.strings.length(words, unit="UTF8_CHAR")
        too_long = sizes > MAX_WORD
        sizes = tf.where(too_long, 1, sizes)
        # Of each character its word and its place in it.
        word, place = _counted(sizes)
        lengths = tf.minimum(tf.gather(sizes, word) - place, self._longest)
        # Of each substring its first character, and its length less one.
        character, more = _counted(lengths)
        begin = tf.gather(place, character)
        substrings = tf.strings.substr(
            tf.gather(words, tf.gather(word, character)), begin, more + 1, unit="UTF8_CHAR"
        )
        ids = tf.where(begin == 0, self._first.lookup(substrings), self._further.lookup(substrings))
        longest = tf.math.segment_max(tf.where(ids >= 0, more + 1, 0), character)
        longest = tf.where(tf.gather(too_long, word), 0, longest)
        last = tf.cumsum(lengths, exclusive=True) + tf.maximum(longest, 1) - 1
        is_piece = self._reached(sizes, longest)
        lost = tf.cast(is_piece & (longest == 0), tf.int32)
        lost = tf.gather(tf.math.segment_max(lost, word), word) > 0
        is_piece = tf.where(lost, place == 0, is_piece)
        ids = tf.where(lost, self._unknown, tf.gather(ids, last))
        counts = tf.math.segment_sum(tf.cast(is_piece, tf.int64), word)
        return RaggedRows(tf.boolean_mask(ids, is_piece), tf.pad(tf.cumsum(counts), [[1, 0]]))

    def _reached(self, sizes: tf.Tensor, longest: tf.Tensor) -> tf.Tensor:
        """[P] whether a piece begins at each character of words that have `sizes` [U] of them.

        `longest` [P] are the lengths of the longest pieces there; a word ends where there is none.
        """
        total = tf.size(longest)
        ends = tf.repeat(tf.cumsum(sizes), sizes)
        following = tf.range(total) + longest
        following = tf.where((longest == 0) | (following >= ends), total, following)
        following = tf.concat([following, [total]], axis=0)

        def step(current: tf.Tensor, reached: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            everywhere = tf.ones_like(current, tf.bool)
            reached = tf.tensor_scatter_nd_update(reached, current[:, tf.newaxis], everywhere)
            return tf.gather(following, current), reached

        begins, none = tf.cumsum(sizes, exclusive=True), tf.zeros([total + 1], tf.bool)
        _, reached = tf.while_loop(
            lambda current, _: tf.reduce_any(current < total),
            step,
            (begins, none),
            (tf.TensorShape([None]), tf.TensorShape([None])),
            maximum_iterations=MAX_WORD,
        )
        return reached[:-1]

    def _framed(self, pieces: RaggedRows) -> tf.RaggedTensor:
        """The first pieces of each row between [CLS] and [SEP]."""
        begins = pieces.splits[:-1]
        lengths = tf.minimum(pieces.splits[1:] - begins, self._most) + 2
        row, place = _counted(lengths)
        values = tf.concat([pieces.values, [self._cls, self._sep]], axis=0)
        count = tf.size(pieces.values, tf.int64)
        places = tf.gather(begins, row) + place - 1
        places = tf.where(place == 0, count, places)
        places = tf.where(place == tf.gather(lengths, row) - 1, count + 1, places)
        splits = tf.pad(tf.cumsum(lengths), [[1, 0]])
        return RaggedRows(tf.gather(values, places), splits).ragged()


def _counted(counts: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """For counts [N] their places, each repeated as often, and 0, 1, ... within each."""
    group = tf.repeat(tf.range(tf.size(counts, counts.dtype)), counts)
    begins = tf.cumsum(counts, exclusive=True)
    return group, tf.range(tf.size(group, counts.dtype)) - tf.gather(begins, group)


def _taken(rows: RaggedRows, places: tf.Tensor) -> RaggedRows:
    """The rows at some places [P]."""
    taken = tf.raw_ops.RaggedGather(
        params_nested_splits=[rows.splits],
        params_dense_values=rows.values,
        indices=places,
        OUTPUT_RAGGED_RANK=1,
    )
    return RaggedRows(taken.output_dense_values, taken.output_nested_splits[0])


def _table(ids: dict[str, int]) -> tf.lookup.StaticHashTable:
    keys, values = tf.constant(list(ids), tf.string), tf.constant([*ids.values()], tf.int32)
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, values), -1)


@functools.lru_cache(maxsize=4)
def _becomes(lowercase: bool, strip_accents: bool, split_chinese: bool) -> tuple[np.ndarray, ...]:
    """What each code point becomes.

    Returns:
      Different pages [P * 256] of rows; [4352] the page of each 256 code points; splits and values
      of the rows. The value -1 stands for the code point itself.
    """
    rows: dict[tuple[int, ...], int] = {
        (): _DROPPED,
        (0x20,): _SPACE,
        (_ITSELF,): _SELF,
        (0x20, _ITSELF, 0x20): _WORD,
    }
    table = np.full(_POINTS, _SELF, np.int32)
    for first, last in _CHINESE if split_chinese else ():
        table[first : last + 1] = _WORD
    newer = _ranges(_NEWER)
    for point in range(_POINTS):
        category = unicodedata.category(chr(point))
        if point in newer or category == "Cn":
            continue
        # Most letters have neither a small form nor parts; syllables of Hangul have parts.
        if category == "Lo" and not (unicodedata.decomposition(chr(point)) or point in _HANGUL):
            continue
        row = _sequence(point, category, lowercase, strip_accents, table[point] == _WORD)
        row = tuple(_ITSELF if each == point else each for each in row)
        table[point] = rows.setdefault(row, len(rows))
    pages, of_page = np.unique(table.reshape(-1, _PAGE), axis=0, return_inverse=True)
    splits = np.cumsum([0, *map(len, rows)])
    values = np.array([point for row in rows for point in row], np.int32)
    return pages.reshape(-1), of_page.reshape(-1).astype(np.int32), splits, values


def _sequence(
    point: int, category: str, lowercase: bool, strip_accents: bool, is_word: bool
) -> Sequence[int]:
    """The code points that one becomes."""
    character = chr(point)
    if _PRIVATE <= point < _PRIVATE + len(_NAMED) or point in _PUNCTUATION:
        return (0x20, point, 0x20)
    if character in "\t\n\r" or category in ("Zs", "Zl", "Zp"):
        return (0x20,)
    if point in (0, 0xFFFD) or category in ("Cc", "Cf", "Co", "Cs"):
        return ()
    if strip_accents:
        character = unicodedata.normalize("NFD", character)
        character = "".join(c for c in character if unicodedata.category(c) != "Mn")
    if lowercase:
        character = "".join(c.lower() for c in character)
    text = "".join(f" {c} " if _is_punctuation(c) else c for c in character)
    return [ord(c) for c in (f" {text} " if is_word else text)]


def _is_punctuation(character: str) -> bool:
    # To BERT all marks of ASCII are punctuation, such as $ and +.
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


@functools.lru_cache(maxsize=1)
def _ranges(text: str) -> frozenset[int]:
    """The code points of ranges such as `7FD 8D3-8E2`."""
    ends = ([int(end, 16) for end in part.split("-")] for part in text.split())
    return frozenset(point for part in ends for point in range(part[0], part[-1] + 1))
