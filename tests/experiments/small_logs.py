"""A small click log with the dirt of real ones, as tables and as a corpus."""

import numpy as np
import pyarrow as pa

from experiments.corpora import Corpus, prepared
from pebr_tf.config import Config

WORDS = ("red", "Blue", "ｇｒｅｅｎ", "tea", "pot", "café", "手机", "lamp", "chair", "desk")
CHANGES = {
    "features.item_categories": ("brand",),
    "features.min_token_count": 3,
    "features.vocabulary_size": 60,
    "features.oov_buckets": 7,
    "strata.min_queries": 0,
    "split.calibrate": 0.2,
    "split.test": 0.2,
    "towers.dimension": 8,
    "towers.token_dimension": 8,
    "towers.hidden_layers": (16,),
    "training.batch_size": 32,
    "training.steps": 80,
    "training.validation_interval": 250,
    "training.learning_rate": 0.03,
    "training.early_stop_patience": None,
    "evaluation.average_k": (3, 5),
    "cutoff.min_calibration_queries": 10,
}


def small_config() -> Config:
    return Config().replace_all(CHANGES)


def small_tables(rows: int = 800, seed: int = 0) -> tuple[pa.Table, pa.Table]:
    """Clicks on pairs that share words, and the catalogue; items are called by number."""
    rng = np.random.default_rng(seed)
    titles = [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(40)]
    queries = [f"{first} {second}" for first in WORDS for second in WORDS if first < second]
    popularity = 1 / np.arange(1, len(queries) + 1)
    wanted = rng.choice(len(queries), rows, p=popularity / popularity.sum())
    # One is asked once, and is held out.
    wanted[0] = len(queries) - 1
    items = []
    for place in wanted:
        fit = [len(set(queries[place].split()) & set(title.split())) for title in titles]
        chance = np.exp(4.0 * np.array(fit))
        items.append(rng.choice(40, p=chance / chance.sum()))
    clicks = pa.table(
        {
            "query": [queries[place] for place in wanted],
            "item_id": [f"i{item}" for item in items],
            "clicks": rng.integers(1, 5, rows),
        }
    )
    catalogue = pa.table(
        {
            "item_id": [f"i{item}" for item in range(40)],
            "title": titles,
            "brand": [("acme", "", "uni")[item % 3] for item in range(40)],
        }
    )
    return clicks, catalogue


def small_corpus() -> Corpus:
    return prepared("small", small_config(), *small_tables())
