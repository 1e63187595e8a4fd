"""Small folders of BERT encoders with random weights."""

import json

import numpy as np
from safetensors.numpy import save_file

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789手机#"
VOCABULARY = [
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *LETTERS,
    *(f"##{letter}" for letter in LETTERS),
    *("item", "number", "query", "##er", "new", "shoe", "##s", "red"),
]


def write_folder(path, layers=2, width=16, seed=0, pooling=None, vocabulary=VOCABULARY, **config):
    """Writes a folder and returns its weights by name."""
    random = np.random.default_rng(seed)
    wide, positions = 2 * width, 32
    shapes = {
        "embeddings.word_embeddings.weight": (len(vocabulary), width),
        "embeddings.position_embeddings.weight": (positions, width),
        "embeddings.token_type_embeddings.weight": (2, width),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in (f"encoder.layer.{place}." for place in range(layers)):
        dense = {f"attention.self.{part}": (width, width) for part in ("query", "key", "value")}
        dense |= {"attention.output.dense": (width, width)}
        dense |= {"intermediate.dense": (wide, width), "output.dense": (width, wide)}
        for name, shape in dense.items():
            shapes[f"{layer}{name}.weight"], shapes[f"{layer}{name}.bias"] = shape, shape[:1]
        norms += [f"{layer}attention.output.LayerNorm", f"{layer}output.LayerNorm"]
    weights = {name: 0.3 * random.normal(size=shape) for name, shape in shapes.items()}
    for norm in norms:
        weights[f"{norm}.weight"] = 1 + 0.1 * random.normal(size=width)
        weights[f"{norm}.bias"] = 0.1 * random.normal(size=width)
    weights = {name: array.astype(np.float32) for name, array in weights.items()}
    path.mkdir(parents=True, exist_ok=True)
    made = {
        "model_type": "bert",
        "hidden_size": width,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": wide,
        "max_position_embeddings": positions,
        **config,
    }
    (path / "config.json").write_text(json.dumps(made))
    (path / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    save_file(weights, path / "model.safetensors")
    if pooling:
        (path / "1_Pooling").mkdir(exist_ok=True)
        (path / "1_Pooling/config.json").write_text(json.dumps({f"pooling_mode_{pooling}": True}))
    return weights
