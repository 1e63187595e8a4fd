"""Continuous training, with kills and a full disk: a new span, then an index-only run."""

import errno
import json
import os
import signal

import pytest
from pebr_process import failing_at, killed_at, pebr
from tiny_world import ALWAYS, COMPONENTS, RUN, add_items, write_clicks

from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.release.release import Release
from serving.retriever import Retriever

pytestmark = pytest.mark.slow


def outputs(artifacts, component):
    """The file names of a component's artifacts, without TensorBoard's, which hold a time."""
    return {
        frozenset(name for name in names if "tfevents" not in name)
        for uri, names in artifacts.items()
        if f"/{component}/" in uri
    }


def new(artifacts, before):
    """The artifacts that came after others, which must be as they were."""
    assert {uri: artifacts[uri] for uri in before} == before
    return {uri: names for uri, names in artifacts.items() if uri not in before}


def test_a_new_span_starts_from_the_last_blessed_model(world):
    before, releases = world.finished_artifacts(), world.releases
    write_clicks(world.folder / "data/2/clicks.tsv", seed=8)
    world.edit_config("data/clicks.tsv", "data/{SPAN}/clicks.tsv")
    world.edit_config("warm_start: false", "warm_start: true")
    # A checkpoint at step 40, the best weights at step 50, and a checkpoint at step 80.
    saving = ("pebr_tf.training.checkpoints", "Checkpoints.save")
    killed = pebr(world.folder, *RUN, hooks=[killed_at(*saving, call=3)])
    assert killed.code == -signal.SIGKILL, killed.err
    # Training starts from trained weights: the first loss is what the first run ended with.
    losses = [float(line.split()[-1]) for line in killed.err.splitlines() if "training" in line]
    assert losses[0] < 3.5
    assert outputs(new(world.finished_artifacts(), before), "Trainer") == set(), "half an artifact"
    assert world.releases == releases

    done = pebr(world.folder, *RUN)
    assert done.code == 0, done.err
    assert done.ran() == [ALWAYS, *COMPONENTS[COMPONENTS.index("Trainer") :]]
    # The last checkpoint was at step 40.
    assert done.err.splitlines()[0].startswith("  training  50 of 100 steps")
    assert not list((world.folder / "run/checkpoints").iterdir())
    created = new(world.finished_artifacts(), before)
    assert outputs(created, "Trainer") == outputs(before, "Trainer")
    release = Release.load(world.releases[-1])
    assert len(world.releases) == 2
    assert release.manifest.span == 2
    evaluation = ModelEvaluation.load(release.directory)
    assert evaluation.data.span == 2
    model = world.folder / evaluation.baseline.model
    pointer = json.loads((model / "blessed_model.json").read_text())
    assert pointer["model"] == int(releases[0].name)
    assert evaluation.previous.version == int(releases[0].name)
    assert "min_baseline_recall_lift" in [gate.name for gate in evaluation.gates]

    again = pebr(world.folder, *RUN)
    assert again.code == 0, again.err
    assert list(again.states()) == COMPONENTS
    assert again.ran() == [ALWAYS], "a run must not start from its own model"
    assert "Blessed" in again.out, "a cached run prints the table, too"
    assert len(world.releases) == 2

    # An earlier span, by its number.
    write_clicks(world.folder / "data/1/clicks.tsv", seed=9)
    done = pebr(world.folder, *RUN, "--span", "1", "--until", "ClickLogExampleGen")
    assert done.ran() == ["ClickLogExampleGen"]


def test_index_only_after_a_full_disk_and_a_kill(world):
    before, releases = world.finished_artifacts(), world.releases
    add_items(world.folder)
    arguments, place = (*RUN, "--index-only"), ("pebr_tf.release.release", "_publish")
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/file")
    failed = pebr(world.folder, *arguments, hooks=[failing_at(*place, full)])
    assert failed.code == 2
    assert failed.err == "pebr: run/file must have space. Received: No space left on device.\n"
    assert not {"Transform", "Trainer"} & set(failed.states())
    assert failed.ran()[-3:] == ["IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator"]
    # Neither a finished artifact nor files of one, nor of a release.
    assert outputs(new(world.finished_artifacts(), before), "Pusher") == set()
    pushed = [uri for uri in before if "/Pusher/" in uri]
    files = set().union(*({f"{uri}/{name}" for name in before[uri]} for uri in pushed))
    assert {f"run/artifacts/Pusher/{name}" for name in world.files("run/artifacts/Pusher")} == files
    assert world.releases == releases
    assert not list((world.folder / "releases").glob(".*"))

    killed = pebr(world.folder, *arguments, hooks=[killed_at(*place)])
    assert killed.code == -signal.SIGKILL, killed.err
    assert outputs(new(world.finished_artifacts(), before), "Pusher") == set(), "half an artifact"
    assert world.releases == releases

    done = pebr(world.folder, *arguments)
    assert done.code == 0, done.err
    assert done.ran() == [ALWAYS, "Pusher"]
    created = new(world.finished_artifacts(), before)
    assert outputs(created, "Pusher") == outputs(before, "Pusher")
    assert len(world.releases) == 2
    assert not list((world.folder / "releases").glob(".*")), "files of the killed push"
    towers = [
        json.loads((path / "query_model/assets.extra/query_model.json").read_text("utf-8"))
        for path in world.releases
    ]
    assert towers[0]["steps"] == towers[1]["steps"]
    assert towers[0]["moments"] != towers[1]["moments"]
    found = Retriever.load(world.releases[-1]).retrieve(["huawei phone red"], "top_k", 10)
    assert "new-red" in found.items.row(0)[0]
