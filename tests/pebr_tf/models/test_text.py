"""Text to tokens, against plain Python."""

import unicodedata

import pytest
import tensorflow as tf

from pebr_tf.config import Features
from pebr_tf.models.text import EMPTY, _words, normalised, tokens_of


def words(text, **options):
    (row,) = _words(tf.constant([text]), **{"lowercase": True, **options}).ragged().to_list()
    return [word.decode("utf-8") for word in row]


def tokens(texts, **features):
    rows = tokens_of(tf.constant(texts), Features(**features)).to_list()
    return [[token.decode("utf-8") for token in row] for row in rows]


def oracle(text, word_ngrams=(1, 2), character_ngrams=(3,), max_tokens=64):
    parts = text.split()
    found = [
        " ".join(parts[i : i + size]) for size in word_ngrams for i in range(len(parts) - size + 1)
    ]
    for size in character_ngrams:
        for word in (f"^{part}$" for part in parts if len(part) > 1):
            found += [f"#{word[i : i + size]}" for i in range(len(word) - size + 1)]
    return found[:max_tokens] or [EMPTY]


SENTENCES = ["red wine glass", "a", "", "tv 55 inch 4k x", "ab cd", "one two three four five six"]


@pytest.mark.parametrize(
    ("word_ngrams", "character_ngrams", "max_tokens"),
    [
        ((1,), (), 64),
        ((), (1,), 64),
        ((2, 3), (), 5),
        ((1, 2), (3,), 64),
        ((1, 2), (2, 4), 5),
        ((1,), (8,), 1),
    ],
)
def test_tokens_are_those_of_plain_python(word_ngrams, character_ngrams, max_tokens):
    sizes = {
        "word_ngrams": word_ngrams,
        "character_ngrams": character_ngrams,
        "max_tokens": max_tokens,
    }
    assert tokens(SENTENCES, **sizes) == [oracle(text, **sizes) for text in SENTENCES]


def test_long_texts_keep_the_tokens_of_their_first_words():
    """Words of 9 characters and a space fill all tokens; of longer ones the last are not read."""
    for letters, kept in ((9, 64), (19, 32)):
        text = " ".join(f"é{n:0{letters - 1}d}" for n in range(200))
        expected = [f"e{n:0{letters - 1}d}" for n in range(kept)]
        (tokens,) = tokens_of(tf.constant([text]), Features(word_ngrams=(1,), character_ngrams=()))
        assert [token.decode() for token in tokens.numpy()] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ｉＰｈｏｎｅ　１６", ["iphone", "16"]),
        ("CAFÉ", ["cafe"]),
        ("Cafe\u0301", ["cafe"]),
        ("ΛΌΓΟΣ λόγος", ["λογοσ", "λογοσ"]),
        ("Йод", ["иод"]),
        ("Straße ẞ", ["straße", "ß"]),
        ("İstanbul", ["istanbul"]),
        ("华为手机 Mate60", ["华", "为", "手", "机", "mate60"]),
        ("𠮷野家", ["𠮷", "野", "家"]),
        ("コーヒーabc", ["コ", "ー", "ヒ", "ー", "abc"]),
        ("น้ำ", ["น้", "ำ"]),
        ("삼성 갤럭시", ["삼성", "갤럭시"]),
        ("नमस्ते", ["नमस्ते"]),
        ("wi-fi, 5.5''", ["wi", "fi", "5", "5"]),
        ("👩‍🚀 gift ❤️ 1️⃣", ["gift", "1⃣"]),
        ("a\u200bb\u00adc\x00d\u2028e", ["abc", "d", "e"]),
        ("x²", ["x2"]),
        # A half-width kana and its mark are one letter.
        ("ｶﾞﾊﾟｱ", ["ガ", "パ", "ア"]),
        # What is not UTF-8 separates words.
        (b"tea\xffpot \xe4\xb8", ["tea", "pot"]),
        ("!?  — …", []),
        ("", []),
    ],
)
def test_words(text, expected):
    assert words(text) == expected


def test_case_is_kept_on_demand():
    assert words("ＬＧ Ärger", lowercase=False) == ["LG", "Arger"]


@pytest.mark.parametrize("lowercase", [True, False])
def test_composed_and_decomposed_texts_are_one(lowercase):
    texts = [
        "がぎぐ パピプ ヴ",
        "삼성 갤럭시 한글 값",
        "café naïve Ångström",
        "কো மொ ೋ",
        "ガ゙",
        "학생 가",
    ]
    forms = [
        normalised(
            tf.constant([unicodedata.normalize(form, text) for text in texts]), lowercase
        ).numpy()
        for form in ("NFC", "NFD", "NFKC", "NFKD")
    ]
    for other in forms[1:]:
        assert other.tolist() == forms[0].tolist()


def test_a_mark_at_the_start_of_a_text_leaves_the_text_before_it_alone():
    first, second, third = normalised(tf.constant(["か", "\u3099か", "\u3099"])).numpy()
    assert first.decode() == "か"
    assert second.decode() == "\u3099か"
    assert third.decode() == "\u3099"


def test_a_text_without_words_is_the_one_empty_token():
    assert tokens(["", "!!", "\u200b", b"\xff"]) == [[EMPTY]] * 4


def test_tokens_in_a_graph_with_an_unknown_batch():
    graph = tf.function(
        lambda texts: tokens_of(texts, Features()),
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.string)],
    )
    assert graph(tf.constant([], tf.string)).to_list() == []
    assert graph(tf.constant(["ab"])).to_list() == [[b"ab", b"#^ab", b"#ab$"]]
