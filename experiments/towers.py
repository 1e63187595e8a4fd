"""Trains the towers of one configuration on a corpus in memory, and embeds every query and item."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import tensorflow as tf

from experiments.corpora import Corpus, corpus, corpus_key
from experiments.settings import ExperimentSettings
from experiments.step import Step
from pebr_tf.config import AUTO, Config
from pebr_tf.cutoff.tower_trial import correction_helps, served_recalls, trial_training
from pebr_tf.models.fields import item_fields, query_fields
from pebr_tf.models.two_tower import VALIDATION_PART, TwoTower, family_of
from pebr_tf.training.batches import VALIDATION_BATCHES, Batch
from pebr_tf.training.loop import Trainer, TrainingResult
from pebr_tf.training.optimizers import optimizer_of
from pebr_tf.training.retrieval_validation import RetrievalValidation
from pebr_tf.training.text_table import TextTable

SOURCES = (
    "pebr_tf.cutoff.tower_trial",
    "pebr_tf.data",
    "pebr_tf.distributions",
    "pebr_tf.losses",
    "pebr_tf.models",
    "pebr_tf.training",
    "experiments.corpora",
    "experiments.towers",
)
_SECTIONS = ("split", "strata", "features", "towers", "loss", "training")
_EMBEDDED = 4_096


def tower_step(
    settings: ExperimentSettings,
    dataset: str,
    changes: Mapping[str, Any] | None = None,
    seed: int = 0,
    share: float = 1.0,
) -> Step:
    """The training of one pair of towers.

    Its result: `items` [N, n], `vectors` [Q, n], `tau` [Q], all float32, `steps` and `loss`.

    Args:
      settings: Scale and data.
      dataset: One of `settings.datasets`.
      changes: Dotted keys of the config and their values.
      seed: Of the weights and the order.
      share: Of the training rows.
    """
    changes = dict(changes or {})
    config = settings.config(dataset).replace_all({**changes, "training.seed": seed})
    mapping = config.to_mapping()
    key = {section: mapping[section] for section in _SECTIONS}
    shown = ", ".join(f"{name.split('.')[-1]} {value}" for name, value in changes.items())
    part = "" if share == 1 else f", {share:.0%} of the log"
    released = settings.as_released
    return Step(
        title=f"{dataset}{', ' if shown else ''}{shown}{part}, seed {seed}: towers",
        key={**corpus_key(settings, dataset), **key, "share": share, "released": released},
        sources=SOURCES,
        compute=lambda: train(corpus(settings, dataset), config, share, released),
        cost=config.training.steps * config.training.batch_size / 12_000,
    )


def train(
    data: Corpus, config: Config, share: float = 1.0, by_retrieval: bool = False
) -> dict[str, Any]:
    """Trains, and embeds all queries and items; see `tower_step`.

    With `by_retrieval`, recall decides on the best weights and the early stop, as in the pipeline.
    """
    rows = data.rows("train")
    if share < 1:
        generator = np.random.default_rng(config.training.seed)
        rows = np.sort(generator.choice(rows, int(len(rows) * share), replace=False))
    validation = _validation(data, rows, config.training.batch_size)
    if config.loss.log_q == AUTO:
        config = config.replace("loss.log_q", _log_q_helps(data, config, rows, validation))
    model, trained = _trained(data, config, rows, validation, by_retrieval)
    vectors, tau = _embedded(data, model, config, "query")
    (items,) = _embedded(data, model, config, "item")
    return {
        "items": items,
        "vectors": vectors,
        "tau": tau,
        "steps": trained.steps,
        "loss": trained.loss,
        "log_q": config.loss.log_q,
    }


def _trained(
    data: Corpus,
    config: Config,
    rows: np.ndarray,
    validation: list[Batch],
    by_retrieval: bool = False,
) -> tuple[TwoTower, TrainingResult]:
    """Towers that learned from these rows of the log."""
    training = config.training
    tf.keras.utils.set_random_seed(training.seed)
    model = TwoTower(config, data.vocabulary_sizes)
    first = _batch(data, tf.constant(rows[:2]))
    model.encode_query(first)
    model.encode_item(first)
    batches = (
        tf.data.Dataset.from_tensor_slices(rows)
        .shuffle(len(rows), training.seed)
        .repeat()
        .batch(training.batch_size, drop_remainder=True)
        .map(lambda places: _batch(data, places), 1)
        .prefetch(2)
    )
    recall = {}
    if by_retrieval:
        k = config.evaluation.average_k[0]
        recall["recall"] = _retrieval(data, model, validation, k).recall
    with tempfile.TemporaryDirectory() as checkpoints:
        trainer = Trainer(model, optimizer_of(training), training, checkpoints)
        return model, trainer.run(batches, validation, **recall)


def _retrieval(
    data: Corpus, model: TwoTower, validation: list[Batch], k: int
) -> RetrievalValidation:
    items = {name: each for name, each in data.features.items() if not name.startswith("query")}
    table = TextTable([(tf.constant(data.item_ids.tolist()), items)])
    return RetrievalValidation(model, validation, table, k, tf.distribute.get_strategy())


def _log_q_helps(data: Corpus, config: Config, rows: np.ndarray, validation: list[Batch]) -> bool:
    """As the pipeline's Trainer decides it."""
    if not config.loss.has_softmax or not validation:
        return False
    short = replace(config, training=trial_training(config.training))

    def recalls(log_q: bool) -> np.ndarray:
        model, _ = _trained(data, short.replace("loss.log_q", log_q), rows, [])
        pairs = _retrieval(data, model, validation, 1).embedded()
        return served_recalls(pairs, family_of(config.loss), config.evaluation.average_k)

    return correction_helps(recalls)


def _batch(data: Corpus, rows: tf.Tensor) -> Batch:
    """What the towers take of some rows of the log."""
    query, item = (tf.gather(column, rows) for column in (data.query, data.item))
    batch = {
        name: tf.gather(values, query if name.startswith("query") else item)
        for name, values in data.features.items()
    }
    return {**batch, "clicks": tf.gather(data.clicks, rows)}


def _validation(data: Corpus, rows: np.ndarray, size: int) -> list[Batch]:
    """The pairs that training leaves out, in batches; see `two_tower.is_validation`."""
    chosen = rows[_is_validation(data, rows)]
    size = min(size, len(chosen))
    count = min(len(chosen) // size, VALIDATION_BATCHES) if size > 1 else 0
    return [_batch(data, tf.constant(chosen[i * size : (i + 1) * size])) for i in range(count)]


def _is_validation(data: Corpus, rows: np.ndarray) -> np.ndarray:
    ids, hashes = data.features["query_id"].numpy(), data.features["item_hash"].numpy()
    mixed = ids[data.query[rows]] ^ hashes[data.item[rows]]
    return np.asarray(mixed % VALIDATION_PART == 0)


def _embedded(data: Corpus, model: TwoTower, config: Config, side: str) -> list[np.ndarray]:
    """Vectors and temperatures of all queries, or the vectors of all items."""
    fields = (query_fields if side == "query" else item_fields)(config.features)
    names = [field.name for field in fields] + ["query_frequency"] * (side == "query")

    @tf.function(autograph=False, reduce_retracing=True)
    def encode(batch: Batch) -> tuple[tf.Tensor, ...]:
        if side == "query":
            return tuple(model.encode_query(batch))
        return (model.encode_item(batch),)

    count = len(data.queries if side == "query" else data.item_ids)
    parts = [
        encode({name: data.features[name][begin : begin + _EMBEDDED] for name in names})
        for begin in range(0, count, _EMBEDDED)
    ]
    return [tf.concat(column, axis=0).numpy() for column in zip(*parts, strict=True)]
