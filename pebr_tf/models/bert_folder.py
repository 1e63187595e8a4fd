"""A folder of a pretrained BERT encoder, as sentence-transformers and Hugging Face save it.

    config.json              the architecture
    vocab.txt                one WordPiece per line
    model.safetensors        the weights
    tokenizer_config.json    optional: case, accents; without it the text is lower-cased
    1_Pooling/config.json    optional: CLS or mean; without it the mean

BGE, MiniLM, E5 and GTE (small, base, large) are such encoders.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pebr_tf import storage
from pebr_tf.errors import UserError

if TYPE_CHECKING:
    import numpy as np

CONFIG, VOCABULARY, WEIGHTS = "config.json", "vocab.txt", "model.safetensors"
TOKENIZER, POOLING = "tokenizer_config.json", "1_Pooling/config.json"
CLS, SEP, UNK = "[CLS]", "[SEP]", "[UNK]"
# What the layers compute, and cannot compute otherwise.
_ARCHITECTURE = {"model_type": "bert", "hidden_act": "gelu", "position_embedding_type": "absolute"}
_SIZES = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)


@dataclass(frozen=True)
class BertFolder:
    """What the folder holds.

    Attributes:
      width: Length d of a vector.
      layers: Their number.
      heads: Attention heads of each.
      epsilon: Of the layer norms.
      pooling: Which vectors of the tokens make that of a text.
      vocabulary: The pieces, in the order of their ids.
      lowercase: Whether capitals become small.
      strip_accents: Whether accents are left out.
      split_chinese: Whether each Chinese character is a word.
      weights: By name, float32, without the prefix `bert.`.
      fingerprint: SHA-256 of the files.
    """

    width: int
    layers: int
    heads: int
    epsilon: float
    pooling: Literal["cls", "mean"]
    vocabulary: tuple[str, ...]
    lowercase: bool
    strip_accents: bool
    split_chinese: bool
    weights: dict[str, np.ndarray]
    fingerprint: str

    @classmethod
    def read(cls, path: str) -> BertFolder:
        """Reads a folder, local or remote.

        Raises:
          UserError: A file is missing or broken, or is not of a BERT encoder.
        """
        files = {name: _bytes(path, name) for name in (CONFIG, VOCABULARY, WEIGHTS)}
        for name in (TOKENIZER, POOLING):
            files[name] = _bytes(path, name) if storage.exists(f"{path}/{name}") else b"{}"
        config, tokenizer = _json(path, CONFIG, files), _json(path, TOKENIZER, files)
        for key, wanted in _ARCHITECTURE.items():
            if (received := config.get(key, wanted)) != wanted or "model_type" not in config:
                raise UserError(
                    f"{path}/{CONFIG} must be of a BERT encoder, with {key} {wanted}. "
                    f"Received: {received if 'model_type' in config else 'no model_type'}."
                )
        width, layers, heads, wide, positions = (_size(path, config, name) for name in _SIZES)
        if width % heads:
            raise UserError(
                f"{path}/{CONFIG} must have a hidden_size that is a multiple of "
                f"num_attention_heads ({heads}). Received: {width}."
            )
        vocabulary = _vocabulary(path, files[VOCABULARY])
        shapes = _shapes(width, layers, wide, positions, config.get("type_vocab_size", 2))
        lowercase = bool(tokenizer.get("do_lower_case", True))
        strip_accents = tokenizer.get("strip_accents")
        return cls(
            width=width,
            layers=layers,
            heads=heads,
            epsilon=float(config.get("layer_norm_eps", 1e-12)),
            pooling=_pooling(path, _json(path, POOLING, files)),
            vocabulary=vocabulary,
            lowercase=lowercase,
            strip_accents=lowercase if strip_accents is None else bool(strip_accents),
            split_chinese=bool(tokenizer.get("tokenize_chinese_chars", True)),
            weights=_weights(path, files[WEIGHTS], shapes, len(vocabulary)),
            fingerprint=_fingerprint(files),
        )

    @property
    def positions(self) -> int:
        """The most tokens of a text that the weights can encode."""
        return len(self.weights["embeddings.position_embeddings.weight"])


def _bytes(path: str, name: str) -> bytes:
    try:
        return storage.read_bytes(f"{path}/{name}")
    except OSError:
        raise UserError(
            f"towers.backbone must be a folder of a BERT encoder with {CONFIG}, {VOCABULARY} and "
            f"{WEIGHTS}, as sentence-transformers saves it. Received: {path}, without {name}."
        ) from None


def _json(path: str, name: str, files: dict[str, bytes]) -> dict[str, Any]:
    try:
        content = json.loads(files[name])
    except ValueError as error:
        raise UserError(f"{path}/{name} must be JSON. Received: {error}.") from None
    if not isinstance(content, dict):
        raise UserError(f"{path}/{name} must hold a JSON object. Received: {content!r}.")
    return content


def _size(path: str, config: dict[str, Any], name: str) -> int:
    value = config.get(name)
    if not isinstance(value, int) or value < 1:
        raise UserError(f"{path}/{CONFIG} must have {name} of 1 or more. Received: {value}.")
    return value


def _pooling(path: str, config: dict[str, Any]) -> Literal["cls", "mean"]:
    chosen = {name for name, value in config.items() if name.startswith("pooling_mode_") and value}
    if chosen <= {"pooling_mode_mean_tokens"}:
        return "mean"
    if chosen == {"pooling_mode_cls_token"}:
        return "cls"
    raise UserError(
        f"{path}/{POOLING} must choose pooling_mode_cls_token or pooling_mode_mean_tokens. "
        f"Received: {', '.join(sorted(chosen))}."
    )


def _vocabulary(path: str, content: bytes) -> tuple[str, ...]:
    try:
        lines = content.decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}/{VOCABULARY} must be UTF-8 text. Received: {error}.") from None
    pieces = tuple(line.removesuffix("\r") for line in lines)
    if missing := [piece for piece in (CLS, SEP, UNK) if piece not in pieces]:
        raise UserError(
            f"{path}/{VOCABULARY} must have a line {missing[0]}. Received: {len(pieces)} others."
        )
    return pieces


def _shapes(
    width: int, layers: int, wide: int, positions: int, types: int
) -> dict[str, tuple[int | None, ...]]:
    """The shape of each weight; None where the number of rows is free."""
    shapes: dict[str, tuple[int | None, ...]] = {
        "embeddings.word_embeddings.weight": (None, width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (types, width),
    }
    dense = {
        **{f"attention.self.{part}": (width, width) for part in ("query", "key", "value")},
        "attention.output.dense": (width, width),
        "intermediate.dense": (wide, width),
        "output.dense": (width, wide),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{place}." for place in range(layers)):
        for name, shape in dense.items():
            shapes[f"{layer}{name}.weight"] = shape
            shapes[f"{layer}{name}.bias"] = shape[:1]
        norms += [f"{layer}{part}.LayerNorm" for part in ("attention.output", "output")]
    shapes |= {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}
    return shapes


def _weights(
    path: str, content: bytes, shapes: dict[str, tuple[int | None, ...]], pieces: int
) -> dict[str, np.ndarray]:
    # Only a training needs it; the service does not.
    from safetensors import SafetensorError, numpy

    try:
        received = numpy.load(content)
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"{path}/{WEIGHTS} must be safetensors of 16-bit or 32-bit floats. Received: {error!r}."
        ) from None
    # Old files call the weights of a norm as TensorFlow did.
    renamed = {
        name.removeprefix("bert.")
        .replace("LayerNorm.gamma", "LayerNorm.weight")
        .replace("LayerNorm.beta", "LayerNorm.bias"): array
        for name, array in received.items()
    }
    for name, shape in shapes.items():
        found = renamed[name].shape if name in renamed else None
        fits = found is not None and len(found) == len(shape)
        if not fits or any(b not in (None, a) for a, b in zip(found or (), shape, strict=True)):
            said = ["any" if size is None else size for size in shape]
            raise UserError(
                f"{path}/{WEIGHTS} must have {name} of shape {said}. "
                f"Received: {'none' if found is None else list(found)}.".replace("'", "")
            )
    words = renamed["embeddings.word_embeddings.weight"]
    if len(words) < pieces:
        raise UserError(
            f"{path}/{WEIGHTS} must have a vector for each of the {pieces} lines of {VOCABULARY}. "
            f"Received: {len(words)}."
        )
    return {name: renamed[name].astype("float32") for name in shapes}


def _fingerprint(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()
