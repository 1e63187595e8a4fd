"""`python -m benchmarks retrieval`: range search on synthetic vectors or a user's own."""

import functools
import os
from pathlib import Path

import click

from pebr_tf.errors import UserError

RIVALS = ("brute", "fixed-1", "fixed-2", "faiss", "faiss-fp16", "hnswlib", "usearch")


@click.command()
@click.option("--items", default=1_000_000, show_default=True, help="Items of the corpus.")
@click.option("--dimension", default=128, show_default=True, help="Of the vectors.")
@click.option("--seed", "seeds", multiple=True, type=int, default=[0], help="May be given again.")
@click.option(
    "--query-count", "count", default=1_500, show_default=True, help="500 of them to tune."
)
@click.option("--target", default=0.99, show_default=True, help="Macro and micro recall.")
@click.option(
    "--rival",
    "rivals",
    multiple=True,
    type=click.Choice([*RIVALS, "none"]),
    help="May be given again; all but hnswlib and usearch unless given.",
)
@click.option(
    "--growth", is_flag=True, help="Also 1/5 and 4 times the items: how time grows with N."
)
@click.option("--vectors", type=click.Path(path_type=Path), help="Your items, [N, n] .npy.")
@click.option("--queries", type=click.Path(path_type=Path), help="Your queries, [Q, n] .npy.")
@click.option("--thresholds", type=click.Path(path_type=Path), help="Their cosines, [Q] .npy.")
def retrieval(
    items: int,
    dimension: int,
    seeds: tuple[int, ...],
    count: int,
    target: float,
    rivals: tuple[str, ...],
    growth: bool,
    vectors: Path | None,
    queries: Path | None,
    thresholds: Path | None,
) -> None:
    """Compare range search with ScaNN top-k, FAISS, HNSW libraries and brute force.

    One thread, tuned to the same recall, timed in turns. About ten minutes for a million items.
    """
    # Read by BLAS when NumPy is first imported.
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
    from benchmarks.retrieval import corpus, report

    chosen = [name for name in rivals if name != "none"] if rivals else list(RIVALS[:5])
    own = (vectors, queries, thresholds)
    if any(own) and not all(own):
        raise UserError("--vectors, --queries and --thresholds must be given together.")
    if count <= 500:
        raise UserError(f"--query-count must be above 500. Received: {count}.")
    if vectors and queries and thresholds:
        make = functools.partial(corpus.from_files, vectors, queries, thresholds)
    else:
        make = functools.partial(corpus.clustered, items, dimension)
    corpora = [functools.partial(make, count, seed) for seed in seeds]
    report.run(corpora, chosen, target, growth=growth)
