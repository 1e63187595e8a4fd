"""Settings that follow the size of the log, and the file that states the size."""

import pytest

from pebr_tf.config import Config, ConfigError
from pebr_tf.data.automatic import chosen, chosen_line, resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.errors import UserError

# The training splits of `pebr generate` and of goodbooks-10k.
DEMO = LogSize(rows=238_871, queries=7_994, items=20_000)
GOODBOOKS = LogSize(rows=417_597, queries=7_955, items=10_000)


def values(rows=100_000, items=20_000):
    return chosen(Config(), LogSize(rows, 1_000, items))


def test_large_logs_have_the_values_that_were_measured():
    assert chosen(Config(), DEMO) == {
        "features.vocabulary_size": 100_000,
        "towers.dimension": 128,
        "training.batch_size": 512,
        "training.steps": 1_000,
        "training.validation_interval": 250,
        "evaluation.average_k": (50, 150, 500),
    }
    assert chosen(Config(), GOODBOOKS) == {**chosen(Config(), DEMO), "training.batch_size": 1_024}


@pytest.mark.parametrize(
    ("rows", "batch_size", "steps"),
    [(1, 256, 100), (10_000, 256, 781), (100_000, 256, 1_000), (204_799, 256, 1_599),
     (204_800, 512, 1_000), (1_000_000, 2_048, 1_000), (100_000_000, 4_096, 20_000)],
)  # fmt: skip
def test_batches_and_steps(rows, batch_size, steps):
    found = values(rows)
    assert found["training.batch_size"] == batch_size
    assert found["training.steps"] == steps
    assert found["training.validation_interval"] == steps // 4


@pytest.mark.parametrize(
    ("items", "dimension", "average_k"),
    [(1, 32, (1,)), (7, 32, (2, 5, 7)), (200, 32, (3, 10, 20)), (413, 64, (5, 10, 30)),
     (3_000, 128, (20, 60, 200)), (10_000, 128, (50, 150, 500))],
)  # fmt: skip
def test_dimension_and_averages(items, dimension, average_k):
    found = values(items=items)
    assert found["towers.dimension"] == dimension
    assert found["evaluation.average_k"] == average_k


def test_values_grow_with_the_log():
    sizes = [LogSize(int(1.3**n), 10, int(1.3**n)) for n in range(80)]
    found = [chosen(Config(), size) for size in sizes]
    for key in ("training.batch_size", "towers.dimension"):
        assert [each[key] for each in found] == sorted(each[key] for each in found)
    pairs = [each["training.batch_size"] * each["training.steps"] for each in found]
    assert pairs == sorted(pairs)
    largest = [each["evaluation.average_k"][-1] for each in found]
    assert largest == sorted(largest)


def test_given_values_are_kept_and_followed():
    config = Config().replace_all({"training.batch_size": 64, "towers.dimension": 8})
    found = resolve(config, LogSize(rows=64_000, queries=10, items=10))
    assert (found.training.batch_size, found.towers.dimension) == (64, 8)
    limited = chosen(config.replace("cutoff.limit", 100), DEMO)
    assert limited["evaluation.average_k"] == (50, 100)
    # 2 epochs of 1,000 batches.
    assert (found.training.steps, found.training.validation_interval) == (2_000, 500)
    assert resolve(found, DEMO) == found


def test_the_values_fit_a_line():
    config = Config().replace("towers.dimension", 8)
    assert chosen_line(config, DEMO) == (
        "vocabulary_size 100000, batch_size 512, steps 1000, validation_interval 250, "
        "average_k [50, 150, 500]"
    )
    assert chosen_line(config, DEMO, log_q=True).endswith(", log_q true")
    assert chosen_line(resolve(config, DEMO), DEMO) == ""


def test_auto_is_written_and_read():
    assert Config.from_yaml("training: {steps: auto}") == Config()
    assert "# Most training steps [auto, or 1 to 1000000000]" in Config().to_yaml()


@pytest.mark.parametrize(
    ("key", "text"), [("steps", "many"), ("steps", "AUTO"), ("steps", "auto "), ("seed", "auto")]
)
def test_other_words_and_auto_elsewhere_are_rejected(key, text):
    with pytest.raises(ConfigError, match=rf"^training\.{key} must be an integer .* '{text}'\.$"):
        Config().replace(f"training.{key}", text)


@pytest.mark.parametrize("content", [None, "{", '{"rows": 1}', "[]", '{"rows": 1, "x": 2}'])
def test_a_missing_or_foreign_size_is_reported(tmp_path, content):
    DEMO.save(tmp_path / "kept")
    assert LogSize.load(tmp_path / "kept") == DEMO
    if content is not None:
        (tmp_path / "log_size.json").write_text(content)
    with pytest.raises(UserError, match=r"log_size\.json must state the size of the log\. Rec"):
        LogSize.load(tmp_path)
