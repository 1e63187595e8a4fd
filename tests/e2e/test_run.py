"""The whole pipeline by its command, on the tiny world: results, cache, gates, errors."""

import itertools
import os
import signal
from pathlib import Path

import pyarrow as pa
import pytest
import tensorflow as tf
from forked import Running
from pebr_process import FinishedPebr, RunningPebr, edited, failing_at, pebr, waiting_at
from pyarrow import parquet
from tiny_world import ALWAYS, CLOUD, COMPONENTS, RUN, WorldFolder, write_clicks, write_world

from pebr_tf.cli.main import main
from pebr_tf.config import Config

# Words of a library; the shop knows only the last.
FOREIGN = (
    "ancient gothic nordic lunar tragic comic epic 现代 russian victorian",
    "poetry history romance biography mythology 哲学 memoir fable drama satire",
    "wars kings dragons islands letters ghosts winters voyages gardens black",
)
pytestmark = pytest.mark.slow


def test_the_first_run(base):
    done = base.finished
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == COMPONENTS
    # No line of a framework.
    assert all(line.startswith("  training  ") for line in done.err.splitlines()), done.err
    assert "k = 20" in done.out
    assert "Blessed" in done.out
    assert "No baseline: there is no earlier model that this version reads.\n" in done.out
    assert "Served at recall " in " ".join(done.out.split())
    parts = (line.split(maxsplit=1) for line in done.out.splitlines())
    lines = {words[0]: words[1] for words in parts if len(words) == 2}
    assert (base.folder / lines["report"]).read_text("utf-8").startswith("<!")
    assert Path(lines["release"]) == base.releases[-1]
    assert (base.folder / lines["run"] / "metadata.sqlite").exists()
    assert lines["try"].startswith("pebr query --release ")
    # Transform leaves some of its artifacts empty.
    artifacts = base.finished_artifacts().items()
    assert [uri for uri, names in artifacts if not names and "/Transform/" not in uri] == []


def test_compiling_is_quiet_too(tmp_path):
    """It imports what a run does not: the locked packages fit together without a word."""
    keys = ("pipeline.root", "pipeline.releases", "data.click_log", "data.catalogue")
    config = Config().replace_all({**CLOUD, **{key: f"gs://shop/{key}.csv" for key in keys}})
    (tmp_path / "pebr.yaml").write_text(config.to_yaml(), encoding="utf-8")
    arguments = ("--target", "vertex", "--config", "pebr.yaml", "--out", "pipeline.json")
    done = pebr(tmp_path, "compile", *arguments)
    assert (done.code, done.err) == (0, "")
    assert done.out == "Wrote pipeline.json: 11 tasks, image pebr:1.\n"


def test_its_release_can_be_queried(base):
    query = ("query", "--release", "releases")
    done = pebr(base.folder, *query, "huawei phone", "华为手机")
    assert (done.code, done.err) == (0, "")
    english, chinese = done.out.split("\n\n")
    assert english.startswith("huawei phone  ")
    assert "huawei phone" in english.splitlines()[1]
    assert chinese.startswith("华为手机  ")
    assert "华为手机" in chinese.splitlines()[1]


def test_queries_of_another_vocabulary_are_unfamiliar(base, tmp_path):
    encode = tf.saved_model.load(str(base.releases[-1] / "query_model")).signatures["encode"]

    def unfamiliar(queries):
        return encode(query=tf.constant(queries))["unfamiliar"].numpy().mean()

    foreign = [" ".join(words) for words in itertools.product(*map(str.split, FOREIGN))]
    assert len(foreign) == 1_000
    assert unfamiliar(foreign) >= 0.95
    write_clicks(tmp_path / "data/clicks.tsv", seed=8)
    rows = (tmp_path / "data/clicks.tsv").read_text("utf-8").splitlines()[1:]
    queries = [row.split("\t")[0] for row in rows]
    assert unfamiliar(queries) <= 0.02
    assert unfamiliar([" ".join(reversed(query.split())) for query in queries]) <= 0.02


def test_the_cache(world):
    """A run repeats only what depends on changed code or settings."""
    done = pebr(world.folder, *RUN, hooks=[edited("components.pusher.executor")])
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == [ALWAYS, "Pusher"]
    assert len(world.releases) == 2

    # A gate that fails, also when the result comes from the cache.
    world.edit_config("min_recall_lift: -1", "min_recall_lift: 9")
    for ran in ([ALWAYS, "RetrievalEvaluator", "Pusher"], [ALWAYS]):
        done = pebr(world.folder, *RUN)
        assert done.code == 3
        assert done.ran() == ran
        words = " ".join(done.out.split())
        assert "Not blessed: " in words
        assert "gain in recall over top_k at k = " in words
        assert "below the required 9" in words
        assert done.err == "pebr: the model was not blessed: nothing was pushed.\n"
        assert "release   " not in done.out
        assert len(world.releases) == 2


def one_by_one(folder, run_id):
    """One command per component, in one process; prints the exit code of each."""
    os.chdir(folder)
    edited("components.pusher.executor")()
    for name in COMPONENTS:
        try:
            main([*RUN, "--only", name, "--run-id", run_id])
        except SystemExit as ended:
            print(f"code {ended.code}")


def test_one_component_at_a_time(world):
    """Commands that run one component each do together what one run does."""
    done = FinishedPebr(**vars(Running(one_by_one, world.folder, "night").finish()))
    assert done.out.count("code 0\n") == len(COMPONENTS), done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == [ALWAYS, "Pusher"]
    first, second = world.releases
    assert f"release   {world.folder}/releases/{second.name}\n" in done.out
    for name in ("cutoff.json", "query_model/saved_model.pb"):
        assert (first / name).read_bytes() == (second / name).read_bytes()

    # Without a name, the last run; it is complete.
    again = pebr(world.folder, *RUN, "--only", "Pusher")
    assert "Pusher" in again.out
    assert (again.code, again.ran(), len(world.releases)) == (0, [], 2)
    early = pebr(world.folder, *RUN, "--only", "Trainer", "--run-id", "other")
    assert sentence(early) == (
        "--only Trainer must follow ClickLogExampleGen, Transform in the same run. Received: the "
        "run other."
    )
    assert sentence(pebr(world.folder, *RUN, "--only", "trainer")) == (
        f"--only must be one of {', '.join(COMPONENTS)}. Received: trainer."
    )

    world.edit_config("min_recall_lift: -1", "min_recall_lift: 9")
    done = FinishedPebr(**vars(Running(one_by_one, world.folder, "gate").finish()))
    codes = [line for line in done.out.splitlines() if line.startswith("code")]
    assert codes == ["code 0"] * 9 + ["code 3"] * 2
    assert done.ran() == [ALWAYS, "RetrievalEvaluator", "Pusher"]
    assert len(world.releases) == 2


def test_a_second_run_an_interrupt_and_an_internal_error(world):
    arguments = (*RUN, "--until", "ClickLogExampleGen", "--no-cache")
    place = ("components.click_log_example_gen.publish", "write_dead_letters")
    pipe = world.folder / "pipe"
    os.mkfifo(pipe)
    first = RunningPebr(world.folder, *arguments, hooks=[waiting_at(*place, pipe)])
    # Opens as soon as the first run reads it.
    with pipe.open("w"):
        second = pebr(world.folder, *RUN)
        os.kill(first.pid, signal.SIGINT)
        interrupted = first.finish()
    assert second.code == 2
    assert second.err == (
        "pebr: pipeline.root must be used by one run at a time. Received: run, where process "
        f"{first.pid} is at work.\n"
    )
    assert interrupted.code == 130
    assert interrupted.err == "pebr: interrupted; the next run continues from here.\n"

    failed = pebr(world.folder, *arguments, hooks=[failing_at(*place, ValueError("a bug"))])
    assert failed.code == 1
    assert "Traceback (most recent call last)" in failed.err
    assert "ValueError: a bug" in failed.err

    done = pebr(world.folder, *arguments)
    assert done.code == 0, done.err
    assert list(done.states()) == ["ClickLogExampleGen"]
    assert done.ran() == ["ClickLogExampleGen"]
    assert "k = 20" not in done.out


def test_a_wrong_config_and_an_unusable_click_log(tmp_path):
    """The tests of ClickLogExampleGen hold every case of bad input; here one stands for all."""
    write_world(tmp_path / "world")
    world = WorldFolder(tmp_path / "world")
    world.edit_config("steps: 100", "steps: many")
    done = pebr(world.folder, *RUN)
    assert "pebr.yaml: training.steps must be" in sentence(done)
    assert not (world.folder / "run").exists()

    world.edit_config("steps: many", "steps: 100")
    world.edit_config("data/clicks.tsv", "data/clicks.parquet")
    table = pa.table({"query": [[1], [2]], "item_id": [b"e1", b"e2"]})
    parquet.write_table(table, world.folder / "data/clicks.parquet")
    done = pebr(world.folder, *RUN)
    assert "Bad rows of the click log must" in sentence(done)
    assert done.states() == {}
    assert not (world.folder / "run").exists()
    assert not (world.folder / "releases").exists()


def sentence(done):
    """The only line of a run that ended with a user error."""
    assert done.code == 2, done.err
    (line,) = done.err.splitlines()
    assert line.startswith("pebr: ")
    assert "Received" in line
    return line.removeprefix("pebr: ")
