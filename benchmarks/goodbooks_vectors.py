"""Vectors and thresholds of a model trained on real tags of books, for the retrieval benchmark.

    python -m benchmarks goodbooks-vectors DATA_DIRECTORY OUT_DIRECTORY

DATA_DIRECTORY holds books.csv, tags.csv and book_tags.csv (or book_tags.csv.zip) of goodbooks-10k.
A tag is a query, a book an item, and a pair counts ceil(log2(1 + count)) clicks. Two small towers
learn from 80% of the pairs with BetaNCE; recall of the others shows that they have learnt. Every
query then gets its threshold by the level rule with level temperature 1, all with the one cut-off
that gives `--average` books per query.

Ten thousand books are a small corpus. `--tile` copies make a large one: each is its book's vector
with Gaussian noise, at a cosine of about .97 with it, so that the counts grow about as the corpus.
"""

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import click
import numpy as np
from rich.console import Console
from rich.progress import track as rich_track
from rich.table import Table

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)
from pebr_tf.data.goodbooks import MAX_SHARE, MIN_BOOKS, read_columns
from pebr_tf.errors import UserError
from pebr_tf.files import replacing_file

HELD_OUT = 0.2
MOST_WORDS, TOKEN_DIMENSION = 12, 32
BATCH, LEARNING_RATE, HIDDEN = 512, 3e-3, 256
# The length of the noise of a copy: its cosine with the book is 1 / sqrt(1 + .25^2) = .97.
NOISE = 0.25
HALVINGS = 16
WANTED_QUERIES = 2_000
# Scores held at once: 64 MiB.
QUERY_BLOCK, ITEM_BLOCK = 256, 65_536


@dataclass(frozen=True)
class TagLog:
    """Pairs of tags and books, both numbered from 0.

    Attributes:
      tag_texts: [Q] names of the tags.
      book_texts: [N] titles and authors of the books.
      tags: [P] the tag of each pair.
      books: [P] the book of each pair.
      clicks: [P] clicks of each pair, at least 1.
    """

    tag_texts: list[str]
    book_texts: list[str]
    tags: np.ndarray
    books: np.ndarray
    clicks: np.ndarray

    def part(self, chosen: np.ndarray) -> "TagLog":
        """The same tags and books with the chosen pairs, [P] booleans."""
        pairs = (self.tags[chosen], self.books[chosen], self.clicks[chosen])
        return TagLog(self.tag_texts, self.book_texts, *pairs)

    def matrix(self) -> np.ndarray:
        """[Q, N] booleans, true where a tag and a book are a pair."""
        pairs = np.zeros((len(self.tag_texts), len(self.book_texts)), bool)
        pairs[self.tags, self.books] = True
        return pairs


@dataclass(frozen=True)
class TowerVectors:
    """Outputs of the trained towers.

    Attributes:
      items: [N, n] float32 unit vectors.
      queries: [Q, n] float32 unit vectors.
      tau: [Q] float32 temperatures.
    """

    items: np.ndarray
    queries: np.ndarray
    tau: np.ndarray


def track(steps: range, name: str | None) -> Iterable[int]:
    """The steps, with a bar on a terminal's standard error while they go on; none without name."""
    hidden = name is None or not sys.stderr.isatty()
    console = Console(stderr=True)
    return rich_track(steps, name or "", console=console, transient=True, disable=hidden)


def read_log(directory: Path) -> TagLog:
    """The pairs of goodbooks-10k, cleaned of shelves, rare tags, duplicates and counts below 1.

    Raises:
      UserError: A file is missing or is not what it should be, or no tag is left.
    """
    books = read_columns(directory, "books.csv", "goodreads_book_id", "title", "authors")
    tags = read_columns(directory, "tags.csv", "tag_id", "tag_name")
    rows = read_columns(directory, "book_tags.csv", "goodreads_book_id", "tag_id", "count")
    pairs = np.stack([rows["tag_id"], rows["goodreads_book_id"]], axis=1)
    known = np.isin(pairs[:, 0], tags["tag_id"]) & np.isin(pairs[:, 1], books["goodreads_book_id"])
    kept = known & (rows["count"] > 0)
    pairs, first = np.unique(pairs[kept], axis=0, return_index=True)
    counts = rows["count"][kept][first]

    frequency = dict(zip(*np.unique(pairs[:, 0], return_counts=True), strict=True))
    most = MAX_SHARE * len(books["title"])
    chosen = sorted(tag for tag, size in frequency.items() if MIN_BOOKS <= size <= most)
    if not chosen:
        raise UserError(f"{directory} must have tags on {MIN_BOOKS} books or more. Received: none.")
    kept = np.isin(pairs[:, 0], chosen)
    names = dict(zip(tags["tag_id"], tags["tag_name"], strict=True))
    order = np.argsort(books["goodreads_book_id"])
    return TagLog(
        tag_texts=[names[tag] for tag in chosen],
        book_texts=[f"{books['title'][row]} {books['authors'][row]}" for row in order],
        tags=np.searchsorted(chosen, pairs[kept, 0]),
        books=np.searchsorted(books["goodreads_book_id"][order], pairs[kept, 1]),
        clicks=np.ceil(np.log2(1 + counts[kept])),
    )


def tokens_of(tag_texts: list[str], book_texts: list[str]) -> tuple[np.ndarray, np.ndarray, int]:
    """Numbers of the tokens of tags, [Q, L], and of books, [N, L], and how many tokens there are.

    A text's tokens are one of its own, then the first `MOST_WORDS` of its words that other texts
    have, too. Tags and books share the words. The number 0 fills up and is no token.
    """
    texts = [dict.fromkeys(re.findall(r"[^\W_]+", text.lower())) for text in tag_texts + book_texts]
    frequency = Counter(word for words in texts for word in words)
    shared = (word for word, texts_with_it in frequency.items() if texts_with_it > 1)
    numbers = {word: number for number, word in enumerate(shared, len(texts) + 1)}
    tokens = np.zeros((len(texts), 1 + MOST_WORDS), np.int32)
    for position, words in enumerate(texts):
        row = [position + 1, *(numbers[word] for word in words if word in numbers)][
            : 1 + MOST_WORDS
        ]
        tokens[position, : len(row)] = row
    return tokens[: len(tag_texts)], tokens[len(tag_texts) :], len(texts) + len(numbers)


def train(log: TagLog, dimension: int, steps: int, generator: np.random.Generator) -> TowerVectors:
    """Trains the towers on a log's pairs, drawn by their clicks, and embeds all tags and books.

    A tower takes the sum of its tokens' vectors, which both share, over the square root of their
    number, and ends in a perceptron of its own. The loss has the item -> query term, and masks
    pairs of the log among the negatives.
    """
    import tensorflow as tf

    from pebr_tf.losses.layers import BetaNCE
    from pebr_tf.losses.negatives import Negatives
    from pebr_tf.models.tau_head import TauHead

    tf.keras.utils.set_random_seed(int(generator.integers(2**31)))
    tag_tokens, book_tokens, token_count = tokens_of(log.tag_texts, log.book_texts)
    token_vectors = tf.keras.layers.Embedding(token_count + 1, TOKEN_DIMENSION)
    query_tower, item_tower = (
        tf.keras.Sequential(
            [tf.keras.layers.Dense(HIDDEN, "relu"), tf.keras.layers.Dense(dimension)]
        )
        for _ in range(2)
    )
    tau_head = TauHead()
    loss_layer = BetaNCE({"symmetric_weight": 1.0})
    optimizer = tf.keras.optimizers.Adam(LEARNING_RATE)

    def pooled(tokens: tf.Tensor) -> tf.Tensor:
        present = tf.cast(tokens > 0, tf.float32)[:, :, tf.newaxis]
        total = tf.reduce_sum(token_vectors(tokens) * present, axis=1)
        return total / tf.sqrt(tf.reduce_sum(present, axis=1))

    def embed_tags(tags: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        features = pooled(tf.gather(tag_tokens, tags))
        return tf.math.l2_normalize(query_tower(features), axis=1), tau_head(features)

    def embed_books(books: tf.Tensor) -> tf.Tensor:
        features = pooled(tf.gather(book_tokens, books))
        return tf.math.l2_normalize(item_tower(features), axis=1)

    @tf.function(autograph=False)
    def step(tags: tf.Tensor, books: tf.Tensor) -> None:
        with tf.GradientTape() as tape:
            queries, tau = embed_tags(tags)
            negatives = Negatives(item_ids=books, query_ids=tags)
            loss = loss_layer(queries, embed_books(books), tau, negatives)
        layers = (token_vectors, query_tower, item_tower, tau_head)
        variables = [variable for layer in layers for variable in layer.trainable_variables]
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))

    shares = np.cumsum(log.clicks)
    for _ in track(range(steps), "training"):
        drawn = np.searchsorted(shares, generator.random(BATCH) * shares[-1], side="right")
        step(tf.constant(log.tags[drawn]), tf.constant(log.books[drawn]))

    queries, tau = _in_blocks(embed_tags, len(log.tag_texts))
    (items,) = _in_blocks(lambda books: (embed_books(books),), len(log.book_texts))
    return TowerVectors(items, queries, tau)


def _in_blocks(embed: Callable[[np.ndarray], tuple], count: int) -> list[np.ndarray]:
    parts = [embed(np.arange(count)[begin : begin + 4096]) for begin in range(0, count, 4096)]
    return [np.concatenate(outputs) for outputs in zip(*parts, strict=True)]


def held_out_recall(vectors: TowerVectors, held_out: TagLog, top: int = 100) -> float:
    """The share of a tag's held-out books among its `top` nearest of all books, mean over tags."""
    pairs = held_out.matrix()
    top = min(top, len(vectors.items))
    recalls = []
    for begin in range(0, len(vectors.queries), QUERY_BLOCK):
        part = slice(begin, begin + QUERY_BLOCK)
        nearest = np.argpartition(-(vectors.queries[part] @ vectors.items.T), top - 1, axis=1)
        found = np.take_along_axis(pairs[part], nearest[:, :top], axis=1).sum(axis=1)
        total = pairs[part].sum(axis=1)
        recalls.append(found[total > 0] / total[total > 0])
    return float(np.concatenate(recalls).mean())


def thresholds_of(vectors: TowerVectors, average: float) -> np.ndarray:
    """[Q] thresholds: logit - level >= c, with the c that gives `average` items per query.

    With level temperature 1 the mean of exp(logit - level) is 1, so that c is at most log N.

    Raises:
      UserError: No c does.
    """
    from pebr_tf.distributions import exact_level
    from pebr_tf.distributions.logit import cosine_of_logit, relevance_logit

    levels = []
    for begin in range(0, len(vectors.queries), QUERY_BLOCK):
        part = slice(begin, begin + QUERY_BLOCK)
        cosines = vectors.queries[part] @ vectors.items.T
        levels.append(exact_level(relevance_logit(cosines, vectors.tau[part, None])))
    level = np.concatenate(levels)

    high = math.log(len(vectors.items))
    low = -high
    for _ in track(range(HALVINGS), "looking for the cut-off"):
        cutoff = (low + high) / 2
        thresholds = cosine_of_logit(cutoff + level, vectors.tau).numpy()
        mean = counts_of(vectors.items, vectors.queries, thresholds).mean()
        low, high = (cutoff, high) if mean > average else (low, cutoff)
    if abs(mean - average) > 0.01 * average:
        raise UserError(
            f"--average must be a number of books that a cut-off can give. Received: {average:g}, "
            f"where the nearest is {mean:g}."
        )
    return thresholds


def counts_of(
    items: np.ndarray, queries: np.ndarray, thresholds: np.ndarray, shown_as: str | None = None
) -> np.ndarray:
    """[Q] numbers of items [N, n] at or above the thresholds [Q] of queries [Q, n], all compared.

    Progress is shown under the name `shown_as`.
    """
    counts = np.zeros(len(queries), int)
    for first in track(range(0, len(items), ITEM_BLOCK), shown_as):
        block = items[first : first + ITEM_BLOCK].T
        for begin in range(0, len(queries), QUERY_BLOCK):
            part = slice(begin, begin + QUERY_BLOCK)
            above = queries[part] @ block >= thresholds[part, None]
            # Counting row by row is many times faster than the sum along an axis.
            counts[part] += [np.count_nonzero(row) for row in above]
    return counts


def tiled(items: np.ndarray, tile: int, generator: np.random.Generator) -> np.ndarray:
    """[tile * N, n] noisy copies of unit vectors [N, n], the whole corpus `tile` times in turn."""
    if tile == 1:
        return items
    count, dimension = items.shape
    copies = np.empty((tile * count, dimension), np.float32)
    for begin in range(0, len(copies), count):
        noise = generator.standard_normal(items.shape, np.float32)
        noisy = items + noise * np.float32(NOISE / math.sqrt(dimension))
        copies[begin : begin + count] = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    return copies


def write(directory: Path, **arrays: np.ndarray) -> None:
    """Writes each array to a file of its name, NAME.npy, whole or not at all."""
    for name, array in arrays.items():
        with replacing_file(directory / f"{name}.npy") as path, path.open("wb") as stream:
            np.save(stream, array)


def require_writable(directory: Path) -> None:
    """Creates the directory before the work begins.

    Raises:
      UserError: Nothing can be written there.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"OUT_DIRECTORY must be a directory or new. Received: {directory}, {error.strerror}."
        ) from None
    if not os.access(directory, os.W_OK):
        raise UserError(f"OUT_DIRECTORY must be writable. Received: {directory}.")


def figures(name: str, items: np.ndarray, counts: np.ndarray) -> list[str]:
    """A row of the table: how many items the queries of a corpus have, [Q] counts."""
    sizes = (len(items), len(counts), np.count_nonzero(counts == 0))
    low, middle, high = (f"{value:,.0f}" for value in np.quantile(counts, [0.1, 0.5, 0.9]))
    mean, most = f"{counts.mean():,.1f}", f"{counts.max():,}"
    return [name, *(f"{size:,}" for size in sizes), low, middle, high, mean, most]


@click.command()
@click.argument("data_directory", type=Path)
@click.argument("out_directory", type=Path)
@click.option(
    "--steps", type=click.IntRange(1), default=2_000, show_default=True, help="Steps of training."
)
@click.option(
    "--seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Seed of all that is drawn.",
)
@click.option(
    "--tile", type=click.IntRange(1), default=100, show_default=True, help="Copies of each book."
)
@click.option(
    "--dimension", type=click.IntRange(2), default=64, show_default=True, help="Length of a vector."
)
@click.option(
    "--average",
    type=click.FloatRange(0, min_open=True),
    default=7.0,
    show_default=True,
    help="Books of a query at its threshold, in the mean and before the copies.",
)
def main(
    data_directory: Path,
    out_directory: Path,
    steps: int,
    seed: int,
    tile: int,
    dimension: int,
    average: float,
) -> None:
    """Train on goodbooks-10k and write items.npy, queries.npy and thresholds.npy."""
    require_writable(out_directory)
    log = read_log(data_directory)
    generator = np.random.default_rng(seed)
    held_out = generator.random(len(log.tags)) < HELD_OUT
    vectors = train(log.part(~held_out), dimension, steps, generator)
    recall = held_out_recall(vectors, log.part(held_out))
    console = Console()
    console.print(f"recall@100 of held-out pairs, mean over tags: {recall:.3f}", highlight=False)

    thresholds = thresholds_of(vectors, average)
    book_counts = counts_of(vectors.items, vectors.queries, thresholds)
    items = tiled(vectors.items, tile, generator)
    counts = counts_of(items, vectors.queries, thresholds, "counting")
    kept = counts > 0
    remaining = np.count_nonzero(kept)
    write(out_directory, items=items, queries=vectors.queries[kept], thresholds=thresholds[kept])

    table = Table(title=f"Items at or above the threshold of a query, {dimension} dimensions")
    table.add_column("corpus")
    for column in ("items", "queries", "empty", "p10", "p50", "p90", "mean", "most"):
        table.add_column(column, justify="right")
    table.add_row(*figures("books", vectors.items, book_counts))
    table.add_row(*figures("written", items, counts[kept]))
    console.print(table)
    few = f", fewer than {WANTED_QUERIES:,}" if remaining < WANTED_QUERIES else ""
    console.print(
        f"{len(kept) - remaining:,} queries without an item dropped, {remaining:,} written{few}",
        highlight=False,
    )
