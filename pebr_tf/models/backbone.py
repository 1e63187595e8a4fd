"""The pretrained encoder below the towers: texts in, what the towers take of them out."""

import hashlib
import io
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from pebr_tf import storage
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.models.bert import Bert
from pebr_tf.models.bert_folder import BertFolder
from pebr_tf.models.fields import ITEM_ENCODED, QUERY_ENCODED
from pebr_tf.models.wordpiece import WordPiece

# Texts of one call, and of one file of the cache.
BLOCK, FILE_TEXTS = 1_024, 65_536


class Backbone(tf.Module):
    """An encoder with the weights of `towers.backbone`.

    With `towers.trainable_layers: 0` the towers take its vectors, which never change. Otherwise
    they take the word pieces, and the encoder is a part of the model that is trained.
    """

    def __init__(self, config: Config):
        super().__init__(name="backbone")
        self._config, towers = config, config.towers
        self._folder = BertFolder.read(str(towers.backbone))
        if towers.max_length > self._folder.positions:
            raise UserError(
                f"towers.max_length must be at most {self._folder.positions}, the positions of "
                f"{towers.backbone}. Received: {towers.max_length}."
            )
        self._prefixes = {
            QUERY_ENCODED: towers.query_prefix or "",
            ITEM_ENCODED: towers.item_prefix or "",
        }
        self._word_piece = WordPiece(self._folder, towers.max_length)
        self._encoder = None
        if not towers.trainable_layers:
            encoder = self._encoder = Bert(self._folder, name="encoder", dtype="float32")
            self._encode = tf.function(
                lambda texts: encoder(self._word_piece(texts)),
                autograph=False,
                input_signature=[tf.TensorSpec([None], tf.string)],
            )

    def trained_encoder(self) -> Bert | None:
        """A new encoder that is a part of a model; None if it is frozen."""
        towers, training = self._config.towers, self._config.training
        if not towers.trainable_layers:
            return None
        policy = "mixed_bfloat16" if training.mixed_precision else "float32"
        recompute = training.gradient_checkpointing
        return Bert(self._folder, towers.trainable_layers, recompute, dtype=policy)

    def inputs(self, field: str, texts: tf.Tensor) -> tf.Tensor | tf.RaggedTensor:
        """What a tower takes as a field of encoded texts [B].

        Unit vectors [B, d] of a frozen encoder, ids [B, (T)] of word pieces for another.
        """
        texts = tf.strings.join([self._prefixes[field], texts])
        return self._word_piece(texts) if self._encoder is None else self._encode(texts)

    def inputs_once(self, field: str, texts: tf.Tensor, cache: str) -> tf.Tensor | tf.RaggedTensor:
        """The same for all texts [N] of a log; vectors are found in a folder, or kept there.

        A vector's key is a hash of the weights and of the text.
        """
        if self._encoder is None:
            blocks = range(0, max(len(texts), 1), BLOCK)
            return tf.concat([self.inputs(field, texts[i : i + BLOCK]) for i in blocks], axis=0)
        identity = f"{self._folder.fingerprint} {self._config.towers.max_length}"
        folder = f"{cache}/{hashlib.sha256(identity.encode()).hexdigest()[:16]}"
        prefix = self._prefixes[field].encode()
        keys = np.array(
            [hashlib.sha256(prefix + text).hexdigest()[:32] for text in texts.numpy()], "S32"
        )
        vectors = np.zeros((len(keys), self._encoder.width), np.float32)
        known = np.zeros(len(keys), bool)
        for kept_keys, kept_vectors in _kept(folder):
            _fill(vectors, known, keys, kept_keys, kept_vectors)
        _, missing = np.unique(keys[~known], return_index=True)
        missing = np.flatnonzero(~known)[missing]
        for begin in range(0, len(missing), FILE_TEXTS):
            some = missing[begin : begin + FILE_TEXTS]
            blocks = range(0, len(some), BLOCK)
            made = [self.inputs(field, tf.gather(texts, some[i : i + BLOCK])) for i in blocks]
            new_keys, new_vectors = keys[some], np.concatenate(made)
            _keep(folder, new_keys, new_vectors)
            _fill(vectors, known, keys, new_keys, new_vectors)
        return tf.constant(vectors)


def _kept(folder: str) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    for name in storage.names(folder):
        with np.load(io.BytesIO(storage.read_bytes(f"{folder}/{name}"))) as file:
            yield file["keys"], file["vectors"]


def _keep(folder: str, keys: np.ndarray, vectors: np.ndarray) -> None:
    """Writes a file; its name says what it holds, so that workers may write the same."""
    content = io.BytesIO()
    np.savez(content, keys=keys, vectors=vectors)
    name = hashlib.sha256(keys.tobytes()).hexdigest()[:16]
    storage.write_bytes(f"{folder}/{name}.npz", content.getvalue())


def _fill(
    vectors: np.ndarray,
    known: np.ndarray,
    keys: np.ndarray,
    new_keys: np.ndarray,
    new_vectors: np.ndarray,
) -> None:
    """Writes new vectors [M, d] to where `keys` [N] has their keys, and marks them as known."""
    order = np.argsort(new_keys)
    found = order[np.minimum(np.searchsorted(new_keys, keys, sorter=order), len(order) - 1)]
    same = new_keys[found] == keys
    vectors[same] = new_vectors[found[same]]
    known |= same
