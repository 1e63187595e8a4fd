"""The click logs of the experiment `first-run`: real ones, parts of them, and synthetic shapes."""

import gzip
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pebr_tf.config import Config
from pebr_tf.data import goodbooks, synthetic
from pebr_tf.data.guess import guess_config
from pebr_tf.data.synthetic.text import catalogue_table
from pebr_tf.errors import UserError

QUERY_COUNTS = (300, 1_000, 3_000)


@dataclass(frozen=True)
class ClickLog:
    """A click log with its catalogue.

    Attributes:
      clicks: Columns query, item_id and clicks, and others.
      catalogue: Column item_id and others.
    """

    clicks: pa.Table
    catalogue: pa.Table

    def guessed_config(self) -> Config:
        """What `pebr config init --clicks FILE --catalogue FILE` writes for these tables."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, table in vars(self).items():
                paths.append(f"{folder}/{name}.parquet")
                pq.write_table(table, paths[-1])
            return guess_config(*paths)


@dataclass(frozen=True)
class Shape:
    """A synthetic log.

    Attributes:
      popularity: Exponent of the items' popularity; 1 is the generator's own.
      breadth: Exponent by which broad queries are asked more often; 0 is the generator's own.
    """

    items: int
    queries: int
    clicks: int
    world: int = 0
    noise: float = 0.05
    popularity: float = 1.0
    breadth: float = 0.0

    def log(self, seed: int) -> ClickLog:
        """The log; another seed draws other clicks."""
        spec = synthetic.SyntheticSpec(
            self.items, self.queries, self.clicks, self.world, self.noise
        )
        world = synthetic.make_world(spec)
        items, queries = world.catalogue, world.queries
        popular = _normalised(items.popularity**self.popularity)
        asked = _normalised(queries.popularity * queries.relevant_counts**self.breadth)
        world = replace(
            world,
            catalogue=replace(items, popularity=popular),
            queries=replace(queries, popularity=asked),
        )
        chunks = synthetic.click_chunks(world, replace(spec, seed=spec.seed + 1_000 * seed))
        catalogue = catalogue_table(world.catalogue, 0, len(world.catalogue))
        return ClickLog(pa.concat_tables(chunks), catalogue)


SHAPES = {
    "synthetic, 2,000 items": Shape(2_000, 1_000, 30_000),
    "synthetic, 10,000 items": Shape(10_000, 5_000, 150_000),
    "synthetic, 40,000 items": Shape(40_000, 10_000, 250_000),
    "synthetic, popular items, broad queries": Shape(
        10_000, 5_000, 150_000, world=1, noise=0.02, popularity=1.3, breadth=0.3
    ),
    "synthetic, equal items, narrow queries": Shape(
        10_000, 5_000, 150_000, world=2, noise=0.1, popularity=0.5, breadth=-0.3
    ),
    "synthetic, popular items, much noise": Shape(
        5_000, 3_000, 100_000, world=3, noise=0.2, popularity=1.3, breadth=-0.3
    ),
}


def logs_of(
    goodbooks_folder: Path | None, dbpedia_folder: Path | None
) -> dict[str, Callable[[int], ClickLog]]:
    """By name, what makes each log from a seed; real ones where their folder is given."""
    logs: dict[str, Callable[[int], ClickLog]] = {name: shape.log for name, shape in SHAPES.items()}
    if goodbooks_folder is not None:
        folder = goodbooks_folder
        logs["goodbooks"] = lambda seed: goodbooks_log(folder, None, seed)
        for count in QUERY_COUNTS:
            logs[f"goodbooks, {count:,} queries"] = (
                lambda seed, count=count: goodbooks_log(folder, count, seed)  # type: ignore[misc]
            )
    if dbpedia_folder is not None:
        path = dbpedia_folder
        logs["dbpedia-entity"] = lambda seed: dbpedia_log(path)
    return logs


def goodbooks_log(directory: Path, queries: int | None, seed: int) -> ClickLog:
    """goodbooks-10k, or the clicks of some of its queries, drawn at random."""
    data = goodbooks.read_goodbooks(directory)
    clicks = data.clicks
    if queries is not None:
        texts = clicks["query"].unique()
        chosen = np.random.default_rng(seed).choice(len(texts), queries, replace=False)
        clicks = clicks.filter(pc.is_in(clicks["query"], value_set=texts.take(pa.array(chosen))))
    return ClickLog(clicks, data.catalogue)


def dbpedia_log(directory: Path) -> ClickLog:
    """DBpedia-Entity v2 as a click log: every relevant pair is a click.

    Raises:
      UserError: The folder has not the files of DBpedia-Entity v2.
    """
    try:
        lines = (directory / "queries-v2.txt").read_text("utf-8").splitlines()
        texts = dict(line.split("\t", 1) for line in lines if line)
        with gzip.open(directory / "qrels-v2.txt.gz", "rt", encoding="utf-8") as file:
            judged = [line.split() for line in file]
        relevant = [(texts[row[0]], row[2]) for row in judged if int(row[3]) > 0]
    except (OSError, ValueError, LookupError) as error:
        raise UserError(
            f"{directory} must hold queries-v2.txt and qrels-v2.txt.gz of DBpedia-Entity v2. "
            f"Received: {error}."
        ) from None
    names = sorted({row[2] for row in judged})
    titles = [name.removeprefix("<dbpedia:").rstrip(">").replace("_", " ") for name in names]
    clicks = pa.table(
        {
            "query": [query for query, _ in relevant],
            "item_id": [item for _, item in relevant],
            "clicks": np.ones(len(relevant), np.int64),
        }
    )
    return ClickLog(clicks, pa.table({"item_id": names, "title": titles}))


def _normalised(weights: np.ndarray) -> np.ndarray:
    return weights / weights.sum()
