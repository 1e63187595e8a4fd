"""Continuous training: a new span starts from the last blessed model; an index of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from conftest import RUN, World
from pebr_process import pebr
from tiny_world import add_items, write_clicks

from pebr_tf.release.evaluation import ModelEvaluation
from serving.release import read_release
from serving.retriever import Retriever

pytestmark = pytest.mark.slow


def model_of(world: World) -> str:
    """The only model that a world has, as the metadata name it."""
    (folder,) = (world.folder / "run/artifacts/Trainer/model").iterdir()
    return str(folder.relative_to(world.folder))


def test_a_new_span_starts_from_the_last_blessed_model(world: World) -> None:
    first = model_of(world)
    write_clicks(world.folder / "data/2/clicks.tsv", seed=8)
    world.edit_config("data/clicks.tsv", "data/{SPAN}/clicks.tsv")
    world.edit_config("warm_start: false", "warm_start: true")
    done = pebr(world.folder, *RUN)
    assert done.code == 0, done.err
    release = read_release(world.releases[-1])
    assert len(world.releases) == 2
    assert release.manifest.span == 2
    evaluation = ModelEvaluation.load(release.directory)
    assert evaluation.data.span == 2
    assert evaluation.baseline.model == first
    assert "min_baseline_recall_lift" in [gate.name for gate in evaluation.gates]
    # A start from the trained weights: already the first lines are where the first run ended.
    losses = [float(line.split()[-1]) for line in done.err.splitlines() if "training" in line]
    assert losses[0] < 3.5

    again = pebr(world.folder, *RUN)
    assert again.code == 0, again.err
    assert again.ran() == ["ExampleValidator"], "its own model is not what it starts from"
    assert len(world.releases) == 2

    # An earlier span, by its number.
    write_clicks(world.folder / "data/1/clicks.tsv", seed=9)
    done = pebr(world.folder, *RUN, "--span", "1", "--until", "SchemaGen")
    assert done.ran() == ["ClickLogExampleGen", "StatisticsGen", "SchemaGen"]
    done = pebr(world.folder, *RUN, "--span", "3", "--until", "SchemaGen")
    assert done.code == 2
    assert done.err.startswith("pebr: data.click_log must match files of span 3. Received: ")


def test_index_only(world: World) -> None:
    add_items(world.folder)
    done = pebr(world.folder, *RUN, "--index-only")
    assert done.code == 0, done.err
    assert not {"Transform", "Trainer"} & set(done.states())
    assert done.ran()[-4:] == ["IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher"]
    assert len(world.releases) == 2
    found = Retriever.load(world.releases[-1]).retrieve(["huawei phone red"], "top_k", 10)
    assert "new-red" in found.items.row(0)[0]
    # Once more: nothing is new.
    again = pebr(world.folder, *RUN, "--index-only")
    assert again.ran() == ["ExampleValidator"]
    assert len(world.releases) == 2

    world.edit_config("dimension: 16, token", "dimension: 24, token")
    done = pebr(world.folder, *RUN, "--index-only")
    assert done.code == 2
    assert done.err == (
        "pebr: the last blessed model must fit the configuration, for an index-only run trains "
        "none. Received: towers.dimension 16 in the model, 24 in the configuration.\n"
    )
    assert len(world.releases) == 2


def test_index_only_without_a_model(fresh: Callable[[], World]) -> None:
    world = fresh()
    done = pebr(world.folder, *RUN, "--index-only")
    assert done.code == 2
    assert done.err == (
        "pebr: an index-only run must find a blessed model: run the whole pipeline first. "
        "Received: none.\n"
    )
    assert world.releases == []
