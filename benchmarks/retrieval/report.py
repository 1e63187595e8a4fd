"""Runs the retrieval benchmark and prints its tables."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.retrieval import corpus as corpora_of
from benchmarks.retrieval.corpus import SearchCorpus
from benchmarks.retrieval.methods import RangeSearch
from benchmarks.retrieval.retrieval import (
    BATCHES,
    BUCKETS,
    MethodComparison,
    by_count,
    compare,
    growth,
    level_cost,
)

console = Console(width=None if sys.stdout.isatty() else 150, highlight=False)


def run(
    corpora: Sequence[Callable[[], SearchCorpus]],
    rivals: Sequence[str],
    target: float,
    growth: bool,
) -> None:
    """Prints one table per corpus, then those that were asked for."""
    for make in corpora:
        with _progress() as say:
            say("making vectors")
            corpus = make()
            comparison = compare(corpus, rivals, target, say)
        _print_comparison(comparison)
        ours = comparison.rows[0].method
        assert isinstance(ours, RangeSearch)
        with _progress() as say:
            say("the level operation")
            cost = level_cost(ours, corpus)
        console.print(
            f"level operation (probe, threshold, extension): {cost.ratio:.2f} times a plain search "
            f"down to the same thresholds; {cost.extended:.0%} of the queries extended, recall "
            f"{cost.recall[0]:.4f} macro, {cost.recall[1]:.4f} micro"
        )
        if growth:
            _print_growth(corpus, comparison, target)


@contextlib.contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What shows the step under way: a spinner on a terminal, else lines on standard error."""
    if not console.is_terminal:
        yield lambda step: print(step, file=sys.stderr, flush=True)
        return
    with console.status("") as status:
        yield status.update


def _print_comparison(comparison: MethodComparison) -> None:
    corpus, counts = comparison.corpus, comparison.counts
    ours, *rivals = comparison.rows
    console.print(
        f"\n[bold]{corpus.name}[/bold]: {corpus.items.shape[0]:,} items x {corpus.items.shape[1]}; "
        f"{len(counts):,} timed queries, true counts p10 {np.percentile(counts, 10):.0f}, p50 "
        f"{np.percentile(counts, 50):.0f}, p90 {np.percentile(counts, 90):.0f}, mean "
        f"{counts.mean():.0f}; one thread"
    )
    table = Table()
    table.add_column("method")
    for heading in (
        "recall macro / micro",
        "false +",
        "queries/s, batch " + " / ".join(map(str, BATCHES)),
        "p50 / p99 ms, alone",
        "ours is x, best batch",
        "alone",
    ):
        table.add_column(heading, justify="right")
    for row in comparison.rows:
        p50, p99 = np.percentile(row.latencies, (50, 99)) * 1e3
        table.add_row(
            row.method.name,
            f"{row.recall[0]:.4f} / {row.recall[1]:.4f}",
            str(row.false_positives),
            " / ".join(f"{row.rate[batch]:,.0f}" for batch in BATCHES),
            f"{p50:.2f} / {p99:.2f}",
            f"{ours.times(row):.2f}",
            f"{ours.rate[1] / row.rate[1]:.2f}",
        )
    console.print(table)
    for row in comparison.rows:
        console.print(
            f"  tuned {row.method.name}: {row.method.setting}; tuning recall "
            f"{row.method.reached[0]:.4f} / {row.method.reached[1]:.4f}; "
            f"{row.method.seconds:.0f} s to build and tune"
        )
    names = [f"{low:,}+" if high is None else f"{low:,} to {high:,}" for low, high in BUCKETS]
    for row in (ours, *[row for row in rivals if "fixed" in row.method.name][:1]):
        figures = by_count(row, counts)
        console.print(
            f"  {row.method.name}, alone, p50 / p99 ms by true count: "
            + "; ".join(
                f"{name}: {p50:.2f} / {p99:.2f}"
                for name, (p50, p99) in zip(names, figures, strict=True)
            )
            + f"; head over tail {figures[-1][0] / figures[0][0]:.1f}"
        )


def _print_growth(corpus: SearchCorpus, comparison: MethodComparison, target: float) -> None:
    """Range search alone on a fifth and on four times the items."""
    count, dimension = corpus.items.shape
    table = Table(title="How time grows")
    for heading in ("items", "queries/s, batch 256", "p50 ms alone", "bytes per vector", "build s"):
        table.add_column(heading, justify="right")
    rows = []
    for size in (count // 5, count, 4 * count):
        if size == count:
            measured = comparison
        else:
            with _progress() as say:
                say(f"{size:,} items")
                other = corpora_of.clustered(size, dimension, 500 + len(comparison.counts), 0)
                measured = compare(other, [], target, say)
        row = measured.rows[0]
        assert isinstance(row.method, RangeSearch)
        rows.append((size, measured.counts[: len(row.latencies)], row.latencies))
        table.add_row(
            f"{size:,}",
            f"{row.rate[BATCHES[0]]:,.0f}",
            f"{np.median(row.latencies) * 1e3:.2f}",
            f"{row.method.bytes_per_vector:,.0f}",
            f"{row.method.seconds:.0f}",
        )
    console.print(table)
    by_items, by_results = growth(rows)
    console.print(
        f"  fitted: time of a query ~ items^{by_items:.2f} * (1 + count)^{by_results:.2f}"
    )
