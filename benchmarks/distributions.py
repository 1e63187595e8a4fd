"""Thresholds per second: our laws against the procedure of the paper's appendix, in one run.

    python -m benchmarks distributions

One thread. The appendix integrates the density up to 1,001 knots with SciPy's adaptive quadrature
and interpolates. It is reimplemented here without its cache, because every query has its own law.
Its time does not depend on the batch, so it is measured on a few laws, interleaved with ours. Ours
runs in a graph, as in a query model. A batch of 1,024 is repeated inside one call, rolled each time
so that nothing is reused: an empty call of TensorFlow alone takes some hundred microseconds.
"""

import math
import time
from collections.abc import Callable

import click
import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import integrate

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)


def appendix_threshold(recall: float, density: Callable[[float], float]) -> float:
    """The paper's CosineInvCDF: quadrature at 1,001 knots, then linear interpolation."""
    knots = np.linspace(-1, 1, 1001)
    masses = np.array([integrate.quad(density, -1, knot)[0] for knot in knots])
    return float(np.interp(1 - recall, masses / masses[-1], knots))


def beta_density(alpha: float, beta: float) -> Callable[[float], float]:
    """(1 + x)^(alpha - 1) * (1 - x)^(beta - 1), as the appendix has it."""
    return lambda x: (1 + x) ** (alpha - 1) * (1 - x) ** (beta - 1)


def tilted_density(shape: float, tau: float) -> Callable[[float], float]:
    """(1 - x^2)^(shape - 1) * exp(x / tau), as the appendix has it."""
    return lambda x: (1 + x) ** (shape - 1) * (1 - x) ** (shape - 1) * math.exp(x / tau)


def draw(batch: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Parameters of a batch of queries, as towers produce them: tau from .01 to .5."""
    generator = np.random.default_rng(seed)
    tau = np.exp(generator.uniform(np.log(0.01), np.log(0.5), batch)).astype(np.float32)
    return {
        "tau": tau,
        "alpha": (1 / tau).astype(np.float32),
        "beta": generator.uniform(0.5, 20, batch).astype(np.float32),
        "level": (-generator.uniform(0.01, 0.4, batch) / tau).astype(np.float32),
        "recall": generator.uniform(0.01, 0.99, batch).astype(np.float32),
    }


def laws() -> dict[str, tuple[Callable, Callable | None]]:
    """Name -> (our thresholds of a drawn batch, the appendix's threshold of one drawn query)."""
    from pebr_tf.distributions import Beta, TruncatedExponential

    def beta_by_appendix(q: dict) -> float:
        return appendix_threshold(q["recall"], beta_density(q["alpha"], q["beta"]))

    def power_by_appendix(q: dict) -> float:
        return appendix_threshold(q["recall"], beta_density(1 + 1 / q["tau"], 1))

    def exponential_by_appendix(q: dict) -> float:
        return appendix_threshold(q["recall"], tilted_density(1.0, q["tau"]))

    return {
        "Beta(alpha, beta)": (
            lambda q: Beta(q["alpha"], q["beta"]).threshold(q["recall"]),
            beta_by_appendix,
        ),
        "BetaNCE, closed form": (
            lambda q: Beta.from_tau(q["tau"]).threshold(q["recall"]),
            power_by_appendix,
        ),
        "ExpNCE, closed form": (
            lambda q: TruncatedExponential(q["tau"]).threshold(q["recall"]),
            exponential_by_appendix,
        ),
    }


def repeated(ours: Callable) -> Callable:
    """A graph that evaluates a batch `repeats` times, rolled by one more row each time."""
    import tensorflow as tf

    @tf.function(autograph=False, reduce_retracing=True)
    def graph(batch: dict, repeats: tf.Tensor) -> tf.Tensor:
        def step(index: tf.Tensor, _: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            rolled = {name: tf.roll(value, index, 0) for name, value in batch.items()}
            return index + 1, ours(rolled)

        start = (tf.constant(0), tf.zeros_like(batch["recall"]))
        return tf.while_loop(lambda index, _: index < repeats, step, start)[1]

    return graph


def seconds_per_batch(graph: Callable, batch: dict, repeats: int) -> float:
    """Mean wall time of a batch."""
    start = time.perf_counter()
    graph(batch, repeats).numpy()
    return (time.perf_counter() - start) / repeats


@click.command()
@click.option(
    "--batches",
    "sizes",
    type=click.IntRange(1),
    multiple=True,
    default=[1024, 65536],
    show_default=True,
    help="Queries per batch; can be given more than once.",
)
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
def main(sizes: tuple[int, ...], rounds: int) -> None:
    """Print the thresholds per second of every law."""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)

    table = Table(title=f"Thresholds, one thread, median of {rounds} rounds")
    for column in ("law", "batch", "per second", "us each", "appendix ms each", "times faster"):
        table.add_column(column, justify="left" if column == "law" else "right")
    table.add_column("appendix error", justify="right")

    for name, (ours, appendix) in track(laws().items(), "measuring", transient=True):
        drawn = draw(max(*sizes, rounds))
        batches = {
            size: {key: tf.constant(value[:size]) for key, value in drawn.items()} for size in sizes
        }
        graph = repeated(ours)
        thresholds = graph({key: tf.constant(value) for key, value in drawn.items()}, 1).numpy()
        for batch in batches.values():
            graph(batch, 1)
        own_times: dict[int, list[float]] = {size: [] for size in batches}
        appendix_times, errors = [], []
        for index in range(rounds):
            for size, batch in batches.items():
                repeats = max(1, 65_536 // size)
                own_times[size].append(seconds_per_batch(graph, batch, repeats))
            if appendix is not None:
                query = {key: float(value[index]) for key, value in drawn.items()}
                start = time.perf_counter()
                theirs = appendix(query)
                appendix_times.append(time.perf_counter() - start)
                errors.append(abs(theirs - thresholds[index]))
        for size, times in own_times.items():
            each = float(np.median(times)) / size
            row = [name, f"{size:,}", f"{1 / each:,.0f}", f"{each * 1e6:.2f}"]
            if appendix is None:
                row += ["-", "-", "-"]
            else:
                theirs = float(np.median(appendix_times))
                row += [f"{theirs * 1e3:.0f}", f"{theirs / each:,.0f}", f"{max(errors):.0e}"]
            table.add_row(*row)
    Console().print(table)
