"""The sources of a release without a real model or index: nothing here opens them."""

import numpy as np

from pebr_tf.config import Config
from pebr_tf.release.catalogue import Moments
from pebr_tf.release.release import ReleaseSources
from pebr_tf.release.towers import QueryModelDescription

FILES = {
    "cutoff/cutoff.json": "{}",
    "cutoff/query_model/saved_model.pb": "model",
    "cutoff/query_model/variables/variables.index": "weights",
    "index/index/index.json": "{}",
    "index/index/ids.npy": "ids",
    "index/payload.parquet": "payload",
    "index/notes.txt": "not for a release",
    "evaluation/evaluation.json": "{}",
    "evaluation/report.html": "<p>report</p>",
}
MODEL_DESCRIPTION = "query_model/assets.extra/query_model.json"


def write_sources(folder, seed=0):
    """Sources whose model and index belong together; another seed makes another pair."""
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    moments = Moments(np.full(3, float(seed)), np.eye(3))
    moments.save(folder / "index/moments.npz")
    QueryModelDescription(
        family="beta",
        dimension=3,
        loss="beta_nce",
        steps=1,
        config={},
        policy="level",
        moments=moments.fingerprint(),
    ).save(folder / "cutoff/query_model")
    folders = (folder / name for name in ("cutoff", "index", "evaluation"))
    return ReleaseSources(*folders, Config(), span=7)
