"""How fast the towers train, against tensorflow_recommenders' stock Retrieval task.

  python -m benchmarks training
  python -m benchmarks training --batch 512 --steps 40

All sides have the same towers and take the same batches, held in memory, one step each in turn. The
stock task has one softmax over the items; ours is the default loss, with a softmax in both
directions, masks and a temperature per query. The benchmark counts CPU time of the process, because
wall time on a shared machine depends on other processes.
"""

import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)

# isort: split
import click
import numpy as np
import pyarrow.parquet as pq
import tensorflow as tf
import tensorflow_recommenders as tfrs
from rich.console import Console
from rich.table import Table

from pebr_tf.config import Config
from pebr_tf.data.synthetic import SyntheticSpec, write
from pebr_tf.models.text import tokens_of
from pebr_tf.models.two_tower import TwoTower
from pebr_tf.training.batches import Batch, training_batches
from pebr_tf.training.optimizers import SparseAdam
from pebr_tf.training.text_table import TextTable

_LARGEST = 2**63 - 1
_HELD = 8


class StockTowers(tfrs.Model):
    """The towers of a `TwoTower` under the stock task."""

    def __init__(self, config: Config, words: int):
        super().__init__()
        self.towers = TwoTower(config, {"tokens": words})
        self.task = tfrs.tasks.Retrieval(temperature=config.towers.tau_initial)

    def compute_loss(self, inputs: Batch, training: bool = False) -> tf.Tensor:
        """The sum of the task's losses."""
        towers = self.towers
        queries = towers.query_tower(towers.query_tower.pooled(inputs), training=training)
        items = towers.encode_item(inputs, training)
        return self.task(queries, items, compute_metrics=False, compute_batch_metrics=False)


class ClickCorpus:
    """Raw examples of synthetic clicks in a file, and their conversion to the towers' inputs."""

    def __init__(self, folder: Path, clicks: int, config: Config):
        write(SyntheticSpec(clicks=clicks), folder / "made", "parquet")
        catalogue, log = (pq.read_table(folder / "made" / part) for part in ("catalogue", "clicks"))
        ids, titles = (catalogue[name].to_pylist() for name in ("item_id", "title"))
        title_of = dict(zip(ids, titles, strict=True))
        queries, items = (log[name].to_pylist() for name in ("query", "item_id"))
        self.file = str(folder / "clicks.gz")
        with tf.io.TFRecordWriter(self.file, "GZIP") as writer:
            for example in map(_example, queries, items):
                writer.write(example)
        texts = queries + [title_of[item] for item in items]
        different, occurrences = np.unique(texts, return_counts=True)
        counts: Counter[bytes] = Counter()
        tokens = tokens_of(tf.constant(different), config.features).to_list()
        for row, count in zip(tokens, occurrences.tolist(), strict=True):
            for token in row:
                counts[token] += count
        words = [word for word, n in counts.most_common() if n >= config.features.min_token_count]
        self.words = len(words)
        indices = tf.lookup.KeyValueTensorInitializer(words, np.arange(len(words)))
        table = tf.lookup.StaticVocabularyTable(indices, config.features.oov_buckets)

        def texts_with(names: tuple[str, str], keys: list[str], texts: list[str]) -> TextTable:
            tokens = tokens_of(tf.constant(texts), config.features)
            ids = tokens.with_flat_values(table.lookup(tokens.flat_values))
            hashes = tf.strings.to_hash_bucket_fast(keys, _LARGEST)
            return TextTable([(tf.constant(keys), {names[0]: ids, names[1]: hashes})])

        queries = sorted(set(queries))
        self._queries = texts_with(("query_tokens", "query_id"), queries, queries)
        self._items = texts_with(("item_title_tokens", "item_hash"), ids, titles)

    def parse(self, examples: tf.Tensor) -> Batch:
        """The inputs of the towers as the Trainer makes them; every frequency is 1."""
        spec = {name: tf.io.FixedLenFeature([], tf.string) for name in ("query", "item")}
        raw = tf.io.parse_example(examples, spec)
        ones = tf.ones(tf.shape(raw["query"]))
        facts = dict.fromkeys(("clicks", "query_frequency", "item_frequency"), ones)
        return {**self._queries(raw["query"]), **self._items(raw["item"]), **facts}


def _example(query: str, item: str) -> bytes:
    values = {"query": query, "item": item}
    feature = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[value.encode()]))
        for name, value in values.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString()


def step_of(
    model: tf.keras.Model, optimizer: tf.keras.optimizers.Optimizer, batch: Batch, autograph: bool
) -> Callable[[Batch], tf.Tensor]:
    """A traced step that has run once."""
    model.compute_loss(batch)
    model.compile(optimizer=optimizer)
    optimizer.build(model.trainable_variables)
    step = tf.function(lambda pairs: model.train_step(pairs)["loss"], autograph=autograph)
    step(batch)
    return step


def measure(steps: dict[str, Callable[[Batch], tf.Tensor]], data: list[Batch], rounds: int) -> dict:
    """CPU seconds per step of each side, the mean over interleaved rounds."""
    seconds: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(rounds):
        for name, step in steps.items():
            start = time.process_time()
            step(data[number % len(data)]).numpy()
            seconds[name].append(time.process_time() - start)
    return {name: float(np.mean(times)) for name, times in seconds.items()}


def input_seconds(corpus: ClickCorpus, config: Config, rounds: int) -> float:
    """CPU seconds per batch of the input pipeline."""
    batches = iter(training_batches([corpus.file], corpus.parse, config.training))
    next(batches)
    start = time.process_time()
    for _ in range(rounds):
        next(batches)
    return (time.process_time() - start) / rounds


def rows(corpus: ClickCorpus, size: int, rounds: int) -> dict[str, float]:
    """CPU seconds per batch of each side, the stock task first, and of the input."""
    config = Config().replace_all({"training.batch_size": size, "towers.dimension": 128})
    source = iter(training_batches([corpus.file], corpus.parse, config.training))
    data = [next(source) for _ in range(_HELD)]
    del source
    rate = config.training.effective_learning_rate
    # The stock task calls `len` on a tensor, which requires AutoGraph.
    stock = {
        "stock Retrieval, Keras Adam": tf.keras.optimizers.Adam(rate),
        "stock Retrieval, our SparseAdam": SparseAdam(rate),
    }
    steps = {
        name: step_of(StockTowers(config, corpus.words), optimizer, data[0], autograph=True)
        for name, optimizer in stock.items()
    }
    for name, weight in {"ours, our SparseAdam": 1.0, "ours, without the law": 0.0}.items():
        ours = TwoTower(config.replace("loss.law_weight", weight), {"tokens": corpus.words})
        steps[name] = step_of(ours, SparseAdam(rate), data[0], autograph=False)
    return {
        **measure(steps, data, rounds),
        "input: read, look up": input_seconds(corpus, config, rounds),
    }


@click.command()
@click.option("--batch", "sizes", multiple=True, default=[512, 1024], show_default=True)
@click.option("--steps", default=60, show_default=True, help="Steps of each side.")
@click.option("--clicks", default=60_000, show_default=True, help="Pairs to train on.")
def main(sizes: tuple[int, ...], steps: int, clicks: int) -> None:
    """Print pairs per second of training and of its input, and their ratios."""
    console = Console()
    with console.status("measuring"), tempfile.TemporaryDirectory() as directory:
        corpus = ClickCorpus(Path(directory), clicks, Config())
        table = Table(title=f"Training with {corpus.words:,} words")
        for column in ("batch", "", "ms CPU per step", "pairs per CPU second", "ratio"):
            table.add_column(column, justify="right" if column else "left")
        for size in sizes:
            seconds = rows(corpus, size, steps)
            stock = next(iter(seconds.values()))
            for name, value in seconds.items():
                table.add_row(
                    f"{size:,}",
                    name,
                    f"{value * 1e3:,.1f}",
                    f"{size / value:,.0f}",
                    f"{stock / value:.2f}",
                )
            table.add_section()
    console.print(table)
