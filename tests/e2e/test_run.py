"""The whole pipeline by its command, on the tiny world: results, cache, kills, gates."""

import os
import signal
from pathlib import Path

import ml_metadata
import pytest
from conftest import RUN, SOURCES
from ml_metadata.proto import metadata_store_pb2
from pebr_process import (
    Running,
    edited,
    failing_at,
    killed_at,
    killed_in_training,
    pebr,
    waiting_at,
)

from pebr_tf.release.evaluation import ModelEvaluation

pytestmark = pytest.mark.slow

COMPONENTS = [
    *("ClickLogExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform"),
    *("Trainer", "IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher"),
]
# It compares with the last accepted run and is therefore never cached.
ALWAYS = "ExampleValidator"


def finished_artifacts(world):
    """The folder of each artifact that is finished by the metadata, and the files in it."""
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(world.folder / "run/metadata.sqlite")
    artifacts = ml_metadata.MetadataStore(config).get_artifacts()
    folders = [
        artifact.uri
        for artifact in artifacts
        if artifact.state == metadata_store_pb2.Artifact.State.LIVE
    ]
    return {uri: files(world.folder / uri) for uri in folders}


def files(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_first_run(base):
    done = base.finished
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == COMPONENTS
    # No line of a framework.
    assert all(line.startswith("  training  ") for line in done.err.splitlines()), done.err
    assert "k = 20" in done.out
    assert "Blessed: all 6 gates passed." in done.out
    lines = dict(line.split(maxsplit=1) for line in done.out.splitlines()[-5:])
    assert (base.folder / lines["report"]).read_text("utf-8").startswith("<!")
    assert Path(lines["release"]) == base.releases[-1]
    assert (base.folder / lines["run"] / "metadata.sqlite").exists()
    assert lines["try"].startswith("pebr query --release ")
    # Transform leaves some of its artifacts empty.
    artifacts = finished_artifacts(base).items()
    assert [uri for uri, names in artifacts if not names and "/Transform/" not in uri] == []


def test_its_release_can_be_queried(base):
    query = ("query", "--release", "releases")
    done = pebr(base.folder, *query, "huawei phone", "华为手机")
    assert (done.code, done.err) == (0, "")
    english, chinese = done.out.split("\n\n")
    assert english.startswith("huawei phone  ")
    assert "huawei phone" in english.splitlines()[1]
    assert chinese.startswith("华为手机  ")
    assert "华为手机" in chinese.splitlines()[1]


def test_the_cache(world):
    """A run repeats only what depends on changed code or settings."""
    releases = world.releases
    done = pebr(world.folder, *RUN)
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == [ALWAYS]
    assert world.releases == releases
    assert "Blessed" in done.out, "a cached run prints the table, too"

    done = pebr(world.folder, *RUN, hooks=[edited(SOURCES["RetrievalEvaluator"])])
    assert done.code == 0, done.err
    assert done.ran() == [ALWAYS, "RetrievalEvaluator", "Pusher"]
    assert len(world.releases) == 2
    evaluation = ModelEvaluation.load(world.releases[-1])
    assert evaluation.previous.version == int(releases[0].name)

    # A gate that fails, also when the result comes from the cache.
    world.edit_config("min_recall_lift: -1", "min_recall_lift: 9")
    for ran in ([ALWAYS, "RetrievalEvaluator", "Pusher"], [ALWAYS]):
        done = pebr(world.folder, *RUN)
        assert done.code == 3
        assert done.ran() == ran
        words = " ".join(done.out.split())
        assert "Not blessed: recall lift " in words
        assert "is below the required 9.00." in words
        assert done.err == "pebr: the model was not blessed: nothing was pushed.\n"
        assert "release   " not in done.out
        assert len(world.releases) == 2


# The tests of the other components simulate kills in their own process.
KILLS = {
    "Trainer": killed_in_training(75),
    "Pusher": killed_at("pebr_tf.release.release", "_publish"),
}


@pytest.mark.parametrize("component", KILLS)
def test_a_kill_in_the_middle(world, component):
    arguments = (*RUN, "--until", component)
    edit, kill = edited(SOURCES[component]), KILLS[component]
    before, releases = finished_artifacts(world), world.releases
    killed = pebr(world.folder, *arguments, hooks=[edit, kill])
    assert killed.code == -signal.SIGKILL, killed.err
    after = finished_artifacts(world)
    new = {uri for uri in after if uri not in before}
    assert not [uri for uri in new if f"/{component}/" in uri], "half an artifact"
    assert {uri: after[uri] for uri in before} == before
    assert world.releases == releases

    done = pebr(world.folder, *arguments, hooks=[edit])
    assert done.code == 0, done.err
    assert done.ran() == [ALWAYS, component]
    outputs = {
        uri: names for uri, names in finished_artifacts(world).items() if f"/{component}/" in uri
    }
    created = [names for uri, names in outputs.items() if uri not in before]
    assert created
    # The same file names as in the run without a kill, except for TensorBoard's, which hold a time.
    expected = [names for uri, names in outputs.items() if uri in before]
    assert set(map(_without_events, created)) == set(map(_without_events, expected))
    if component == "Trainer":
        # The last checkpoint was at step 40.
        assert done.err.splitlines()[0].startswith("  training  50 of 100 steps")
        assert not list((world.folder / "run/checkpoints").iterdir())
    if component == "Pusher":
        assert len(world.releases) == len(releases) + 1
        assert not list((world.folder / "releases").glob(".*")), "files of the killed push"


def _without_events(names):
    return frozenset(name for name in names if "tfevents" not in name)


def test_a_second_run_an_interrupt_and_an_internal_error(world):
    arguments = (*RUN, "--until", "SchemaGen", "--no-cache")
    place = ("components.click_log_example_gen.publish", "write_dead_letters")
    pipe = world.folder / "pipe"
    os.mkfifo(pipe)
    first = Running(world.folder, *arguments, hooks=[waiting_at(*place, pipe)])
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
    assert interrupted.err == "pebr: interrupted; another run goes on from here.\n"

    failed = pebr(world.folder, *arguments, hooks=[failing_at(*place, ValueError("a bug"))])
    assert failed.code == 1
    assert "Traceback (most recent call last)" in failed.err
    assert "ValueError: a bug" in failed.err

    done = pebr(world.folder, *arguments)
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS[:3]
    assert done.ran() == COMPONENTS[:3]
    assert "k = 20" not in done.out
