"""Settings that follow the size of the click log: what `auto` stands for.

Every rule is bounded and grows with the log; docs/pipeline.md lists them.

Small logs get many epochs because the best of four checkpoints is kept. Their batches are small so
that there are enough steps; below 256 pairs a batch has too few negatives. The strata are shares of
the clicks and follow the log by themselves; `strata.min_queries` keeps them from being too small to
measure.
"""

from typing import Any

from pebr_tf.config import AUTO, Config
from pebr_tf.data.log_size import LogSize

VOCABULARY_SIZE = 100_000
# Catalogues with fewer items than the first number -> the averages.
AVERAGE_K: tuple[tuple[float, tuple[int, ...]], ...] = (
    (100, (2, 5, 10)),
    (300, (3, 10, 20)),
    (1_000, (5, 10, 30)),
    (3_000, (10, 30, 100)),
    (10_000, (20, 60, 200)),
    (float("inf"), (50, 150, 500)),
)


def resolve(config: Config, size: LogSize) -> Config:
    """`config` with the values of `chosen`; other settings stay as they are."""
    return config.replace_all(chosen(config, size))


def chosen(config: Config, size: LogSize) -> dict[str, Any]:
    """The dotted keys that are `auto`, with the values that fit a log of this size."""
    training = config.training
    batch_size = _or(training.batch_size, _batch_size(size.rows))
    steps = _or(training.steps, _steps(size.rows, batch_size))
    values = {
        "features.vocabulary_size": VOCABULARY_SIZE,
        "towers.dimension": 32 if size.items < 300 else 64 if size.items < 3_000 else 128,
        "training.batch_size": batch_size,
        "training.steps": steps,
        "training.validation_interval": max(steps // 4, 1),
        "evaluation.average_k": _average_k(size.items, config.cutoff.limit),
    }
    return {key: value for key, value in values.items() if config.value_at(key) == AUTO}


def chosen_line(config: Config, size: LogSize, log_q: bool | None = None) -> str:
    """`chosen` as one line for a reader; empty if nothing is `auto`.

    `log_q` is what Trainer chose for `loss.log_q`, if that is known.
    """
    values = chosen(config, size)
    if log_q is not None and config.loss.log_q == AUTO:
        values["loss.log_q"] = str(log_q).lower()
    return ", ".join(
        f"{key.split('.')[-1]} {list(value) if isinstance(value, tuple) else value}"
        for key, value in values.items()
    )


def _or(value: int, automatic: int) -> int:
    return automatic if value == AUTO else value


def _batch_size(rows: int) -> int:
    return 2 ** min(max((rows // 400).bit_length() - 1, 8), 12)


def _steps(rows: int, batch_size: int) -> int:
    epoch = rows / batch_size
    return int(min(max(min(20 * epoch, 1_000), 2 * epoch, 100), 20_000))


def _average_k(items: int, limit: int) -> tuple[int, ...]:
    averages = next(averages for below, averages in AVERAGE_K if items < below)
    return tuple(sorted({max(min(k, items, limit), 1) for k in averages}))
