"""`run_fn` of TFX's Trainer: reads the data, trains with `pebr_tf.training`, exports the towers."""

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_transform as tft
from absl import logging
from tfx.components.trainer.fn_args_utils import FnArgs
from tfx.dsl.io import fileio

from pebr_tf.config import AUTO, TOWER_SECTIONS, Config, Training
from pebr_tf.cutoff.tower_trial import correction_helps, served_recalls, trial_training
from pebr_tf.data.automatic import resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.distributions.law import traced_as_is
from pebr_tf.errors import UserError
from pebr_tf.models.fields import Field, item_fields, query_fields
from pebr_tf.models.two_tower import TwoTower, family_of
from pebr_tf.release.towers import TowersDescription
from pebr_tf.training import batches
from pebr_tf.training.loop import Trainer, TrainingResult
from pebr_tf.training.optimizers import optimizer_of
from pebr_tf.training.retrieval_validation import RetrievalValidation
from pebr_tf.training.text_table import TextTable
from pebr_tf.training.warm_start import warm_start
from pebr_tf.training.workers import (
    all_staying,
    is_chief,
    numbers_of_all,
    strategy_of,
    wait_for_all,
)
from pipeline.display import training_progress

# What training needs of a query beside its fields.
QUERY_FACTS = ("query_id", "query_frequency")
# Texts that the graph of Transform cuts at once.
TEXT_BATCH = 4_096
SECTIONS = (*TOWER_SECTIONS, "training")


def run_fn(fn_args: FnArgs) -> None:
    """Trains the towers and exports them.

    `fn_args.custom_config` holds `config`, a mapping of the sections in SECTIONS; `checkpoints`, a
    folder that all workers share and that survives a killed run; and `average_k` of `evaluation`,
    whose smallest number is the k of validation. `fn_args.eval_files` are those of the split
    `texts`. `fn_args.base_model` is the folder of the model of a warm start, which may be empty.
    """
    # Files of the train split are in a folder of the artifact.
    examples = os.path.dirname(os.path.dirname(fn_args.train_files[0]))
    config = resolve(Config.from_mapping(fn_args.custom_config["config"]), LogSize.load(examples))
    # First, because workers cannot connect after TensorFlow has run an operation.
    strategy = strategy_of(config.training)
    checkpoints = f"{fn_args.custom_config['checkpoints']}/{_identity(fn_args)}"
    with all_staying(lambda: "before the first step or after the last"):
        _train(fn_args, config, strategy, checkpoints)
        # TFX checks for the model on every worker, and only the chief writes it.
        wait_for_all(strategy)
    if is_chief(strategy) and fileio.exists(checkpoints):
        fileio.rmtree(checkpoints)


def _train(
    fn_args: FnArgs, config: Config, strategy: tf.distribute.Strategy, checkpoints: str
) -> None:
    training = config.training
    tf.keras.utils.set_random_seed(training.seed)
    transform = tft.TFTransformOutput(fn_args.transform_output)
    files = _files(fn_args.train_files)
    queries, items = _text_tables(_files(fn_args.eval_files), transform, config)
    parse = _parser(queries, items)
    # Set after the transform layer is made, which must stay in float32.
    policy = "mixed_bfloat16" if training.mixed_precision else "float32"
    tf.keras.mixed_precision.set_global_policy(policy)

    vocabularies = _vocabularies(transform, config)
    sizes = {name: len(words) for name, words in vocabularies.items()}
    validation = batches.validation_batches(files, parse, training)
    data = _Data(files, parse, validation, items, sizes)
    average_k = fn_args.custom_config["average_k"]
    average_k = config.evaluation.average_k if average_k == AUTO else average_k
    if config.loss.log_q == AUTO:
        helps = _try_log_q(data, config, strategy, checkpoints, average_k)
        config = config.replace("loss.log_q", helps)
    with strategy.scope():
        model = _untrained(data, config)
        if training.warm_start and fn_args.base_model:
            _start_from(model, fn_args.base_model, vocabularies)
        trainer = Trainer(
            model, optimizer_of(training), training, checkpoints, fn_args.model_run_dir, strategy
        )
    retrieval = RetrievalValidation(model, validation, items, average_k[0], strategy)
    begin = trainer.resumed_from
    with training_progress(training.steps, begin, shown=is_chief(strategy)) as progress:
        pairs = data.training(training, strategy, begin)
        trained = trainer.run(pairs, validation, progress, retrieval.recall)
    tf.keras.mixed_precision.set_global_policy("float32")
    with _export_folder(strategy, fn_args.serving_model_dir) as directory:
        export(model, transform, config, trained, directory)


@dataclass(frozen=True)
class _Data:
    """What a training reads.

    Attributes:
      files: TFRecords of the split `train`.
      parse: Turns serialized clicks into inputs of the towers.
      validation: Batches of pairs that are not learned from.
      items: The features of all items.
      vocabulary_sizes: Words of each vocabulary.
    """

    files: list[str]
    parse: batches.Parse
    validation: list[batches.Batch]
    items: TextTable
    vocabulary_sizes: Mapping[str, int]

    def training(
        self, training: Training, strategy: tf.distribute.Strategy, begin: int = 0
    ) -> Iterable[batches.Batch]:
        """Endless batches from a step on."""
        return strategy.distribute_datasets_from_function(
            lambda context: batches.training_batches(
                self.files, self.parse, training, begin, context
            )
        )


def _untrained(data: _Data, config: Config) -> TwoTower:
    model = TwoTower(config, data.vocabulary_sizes)
    small = Training(batch_size=2, shuffle_buffer=1)
    pairs = next(iter(batches.training_batches(data.files, data.parse, small)), None)
    if pairs is None:
        raise UserError("the train split must have a pair to train on. Received: none.")
    # Not the loss: it has counters, which only replicas may update.
    model.encode_query(pairs)
    model.encode_item(pairs)
    return model


def _try_log_q(
    data: _Data,
    config: Config,
    strategy: tf.distribute.Strategy,
    checkpoints: str,
    average_k: Sequence[int],
) -> bool:
    """Whether `loss.log_q` helps; see `pebr_tf.cutoff.tower_trial`. The same on all workers."""
    training = trial_training(config.training)
    if not config.loss.has_softmax or not data.validation:
        return False

    def recalls(log_q: bool) -> np.ndarray:
        tf.keras.utils.set_random_seed(training.seed)
        with strategy.scope():
            model = _untrained(data, config.replace("loss.log_q", log_q))
            folder = f"{checkpoints}/log_q_{log_q}"
            trainer = Trainer(model, optimizer_of(training), training, folder, strategy=strategy)
        trainer.run(data.training(training, strategy, trainer.resumed_from), ())
        pairs = RetrievalValidation(model, data.validation, data.items, 1, strategy).embedded()
        return served_recalls(pairs, family_of(config.loss), average_k)

    helps = correction_helps(recalls)
    tf.keras.utils.set_random_seed(training.seed)
    return bool(numbers_of_all(strategy, helps)[0])


def _files(patterns: list[str]) -> list[str]:
    """Sorted so that all workers see the pairs in the same order."""
    return sorted(path for pattern in patterns for path in tf.io.gfile.glob(pattern))


@contextlib.contextmanager
def _export_folder(strategy: tf.distribute.Strategy, directory: str) -> Iterator[str]:
    """The export folder of this worker. All workers export; only the chief's files are kept."""
    if is_chief(strategy):
        yield directory
        return
    with tempfile.TemporaryDirectory() as temporary:
        yield temporary


def export(
    model: TwoTower,
    transform: tft.TFTransformOutput,
    config: Config,
    trained: TrainingResult,
    directory: str,
) -> None:
    """Writes the towers as a SavedModel with raw columns as inputs, and their description."""
    module = tf.Module()
    # The name in the checkpoint, by which a later training finds the weights.
    module.towers = model
    module.transform = transform.transform_features_layer()
    columns = _item_columns(config)

    @tf.function(autograph=False)
    def query(query: tf.Tensor) -> dict[str, tf.Tensor]:
        return _query(module, {"query": query[:, tf.newaxis]})

    @tf.function(autograph=False)
    def item(**columns: tf.Tensor) -> dict[str, tf.Tensor]:
        features = module.transform({name: value[:, tf.newaxis] for name, value in columns.items()})
        return {"embedding": model.encode_item(features)}

    @tf.function(autograph=False)
    def serialized_examples(examples: tf.Tensor) -> dict[str, tf.Tensor]:
        spec = {
            name: tf.io.FixedLenFeature([1], dtype)
            for name, dtype in {"query": tf.string, **columns}.items()
        }
        raw = tf.io.parse_example(examples, spec)
        encoded = _query(module, {"query": raw["query"]})
        items = module.transform({name: raw[name] for name in columns})
        encoded["query_embedding"] = encoded.pop("embedding")
        return {**encoded, "item_embedding": model.encode_item(items)}

    inputs = {name: tf.TensorSpec([None], dtype, name) for name, dtype in columns.items()}
    signatures = {
        "query": query.get_concrete_function(tf.TensorSpec([None], tf.string, "query")),
        "item": item.get_concrete_function(**inputs),
        "serialized_examples": serialized_examples.get_concrete_function(
            tf.TensorSpec([None], tf.string, "examples")
        ),
    }
    tf.saved_model.save(
        module,
        directory,
        signatures,
        tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )
    head = getattr(model.loss_layer, "law_head", None)
    TowersDescription(
        family=family_of(config.loss),
        dimension=config.towers.dimension,
        loss=config.loss.family,
        steps=trained.steps,
        law=None if head is None else head.get_law().to_mapping(),
        config={name: getattr(config, name).to_mapping() for name in TOWER_SECTIONS},
    ).save(directory)


def _query(module: tf.Module, raw: Mapping[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    features = module.transform(raw)
    encoded = module.towers.encode_query(features)
    return {
        "embedding": encoded.vectors,
        "tau": encoded.tau,
        "frequency": features["query_frequency"],
        "known_share": features["known_share"],
        "stratum": features["stratum"],
    }


def _vocabularies(transform: tft.TFTransformOutput, config: Config) -> dict[str, list[str]]:
    fields = (*query_fields(config.features), *item_fields(config.features))
    names = dict.fromkeys(field.vocabulary for field in fields if field.vocabulary)
    return {name: _words(transform.vocabulary_file_by_name(name)) for name in names}


def _words(path: str) -> list[str]:
    """The words of a vocabulary file; `splitlines` would split at characters inside words."""
    with fileio.open(path, "rb") as file:
        lines = file.read().removesuffix(b"\n").split(b"\n")
    return [line.decode("utf-8", "surrogateescape") for line in lines]


def _text_tables(
    files: list[str], transform: tft.TFTransformOutput, config: Config
) -> tuple[TextTable, TextTable]:
    """The features of all training queries and of all items, by the graph of Transform.

    Args:
      files: The split `texts`, whose rows are queries or items.
      transform: The graph.
      config: Its sections features.
    """
    layer = transform.transform_features_layer()
    columns = {**_item_columns(config), "item_id": tf.string}
    types = {"query": tf.string, "clicks": tf.int64, **columns}
    spec = {name: tf.io.FixedLenFeature([1], dtype) for name, dtype in types.items()}

    def features(examples: tf.Tensor) -> tuple[tuple[tf.Tensor, batches.Batch], ...]:
        raw = tf.io.parse_example(examples, spec)
        is_query = raw["item_id"][:, 0] == ""
        query = tf.boolean_mask(raw["query"], is_query)
        raw = {name: tf.boolean_mask(values, ~is_query) for name, values in raw.items()}
        queries = _picked(layer({"query": query}), query_fields(config.features), QUERY_FACTS)
        items = layer({name: raw[name] for name in columns})
        items = _picked(items, item_fields(config.features), ("item_hash",))
        items["item_frequency"] = tf.cast(raw["clicks"][:, 0], tf.float32)
        return (query[:, 0], queries), (raw["item_id"][:, 0], items)

    records = tf.data.TFRecordDataset(files, "GZIP").batch(TEXT_BATCH)
    parts = list(records.map(traced_as_is(features), tf.data.AUTOTUNE))
    queries, items = zip(*parts, strict=True)
    return TextTable(queries), TextTable(items)


def _picked(
    features: Mapping[str, Any], fields: tuple[Field, ...], facts: tuple[str, ...]
) -> batches.Batch:
    return {name: features[name] for name in (*(field.name for field in fields), *facts)}


def _parser(queries: TextTable, items: TextTable) -> batches.Parse:
    """Parses clicks, and looks up the features of their queries and items."""
    texts = dict.fromkeys(("query", "item_id"), tf.io.FixedLenFeature([], tf.string))
    spec = {**texts, "clicks": tf.io.FixedLenFeature([], tf.int64)}

    def parse(examples: tf.Tensor) -> batches.Batch:
        raw = tf.io.parse_example(examples, spec)
        clicks = tf.cast(raw["clicks"], tf.float32)
        return {**queries(raw["query"]), **items(raw["item_id"]), "clicks": clicks}

    return parse


def _item_columns(config: Config) -> dict[str, tf.DType]:
    return {
        field.column: tf.float32 if field.kind == "number" else tf.string
        for field in item_fields(config.features)
    }


def _start_from(model: TwoTower, base_model: str, vocabularies: Mapping[str, list[str]]) -> None:
    """Copies the matching weights of an earlier model, if there is one."""
    if TowersDescription.find(base_model) is None:
        logging.warning("No warm start: there is no earlier model that this version reads.")
        return
    paths = {name: f"{base_model}/assets/{name}" for name in vocabularies}
    words = {name: _words(path) for name, path in paths.items() if fileio.exists(path)}
    warm_start(model, base_model, vocabularies, words)


def _identity(fn_args: FnArgs) -> str:
    """Identifies a training: the same data, transform and settings resume from its checkpoints."""
    content = json.dumps(
        [fn_args.train_files, fn_args.transform_output, fn_args.custom_config],
        sort_keys=True,
    )
    return hashlib.sha256(content.encode()).hexdigest()[:16]
