"""Continuous training: a new span starts from the last blessed model; index-only runs."""

import json

import pytest
from conftest import RUN
from pebr_process import pebr
from tiny_world import add_items, write_clicks

from pebr_tf.release.evaluation import ModelEvaluation
from pebr_tf.release.release import Release
from serving.retriever import Retriever

pytestmark = pytest.mark.slow


def test_a_new_span_starts_from_the_last_blessed_model(world):
    (first,) = (world.folder / "run/artifacts/Trainer/model").iterdir()
    write_clicks(world.folder / "data/2/clicks.tsv", seed=8)
    world.edit_config("data/clicks.tsv", "data/{SPAN}/clicks.tsv")
    world.edit_config("warm_start: false", "warm_start: true")
    done = pebr(world.folder, *RUN)
    assert done.code == 0, done.err
    release = Release.load(world.releases[-1])
    assert len(world.releases) == 2
    assert release.manifest.span == 2
    evaluation = ModelEvaluation.load(release.directory)
    assert evaluation.data.span == 2
    assert evaluation.baseline.model == str(first.relative_to(world.folder))
    assert "min_baseline_recall_lift" in [gate.name for gate in evaluation.gates]
    # Training starts from trained weights: the first loss is what the first run ended with.
    losses = [float(line.split()[-1]) for line in done.err.splitlines() if "training" in line]
    assert losses[0] < 3.5

    again = pebr(world.folder, *RUN)
    assert again.code == 0, again.err
    assert again.ran() == ["ExampleValidator"], "a run must not start from its own model"
    assert len(world.releases) == 2

    # An earlier span, by its number.
    write_clicks(world.folder / "data/1/clicks.tsv", seed=9)
    done = pebr(world.folder, *RUN, "--span", "1", "--until", "ClickLogExampleGen")
    assert done.ran() == ["ClickLogExampleGen"]


def test_index_only(world):
    add_items(world.folder)
    done = pebr(world.folder, *RUN, "--index-only")
    assert done.code == 0, done.err
    assert not {"Transform", "Trainer"} & set(done.states())
    assert done.ran()[-4:] == ["IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher"]
    assert len(world.releases) == 2
    towers = [
        json.loads((path / "query_model/assets.extra/query_model.json").read_text("utf-8"))
        for path in world.releases
    ]
    assert towers[0]["steps"] == towers[1]["steps"]
    assert towers[0]["moments"] != towers[1]["moments"]
    found = Retriever.load(world.releases[-1]).retrieve(["huawei phone red"], "top_k", 10)
    assert "new-red" in found.items.row(0)[0]
    # Nothing is new for another run.
    again = pebr(world.folder, *RUN, "--index-only")
    assert again.ran() == ["ExampleValidator"]
    assert len(world.releases) == 2
