"""The whole pipeline by its command, on a tiny world: results, cache, kills, gates."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import ml_metadata
import pytest
from conftest import PEBR, RUN, SOURCES, BaseRun, World
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
# It compares with the last accepted run, and so is never cached.
ALWAYS = "ExampleValidator"


def live(world: World) -> dict[str, set[str]]:
    """Of each artifact that the metadata calls finished, its folder and the files in it."""
    config = metadata_store_pb2.ConnectionConfig()
    config.sqlite.filename_uri = str(world.folder / "run/metadata.sqlite")
    artifacts = ml_metadata.MetadataStore(config).get_artifacts()
    folders = [
        artifact.uri
        for artifact in artifacts
        if artifact.state == metadata_store_pb2.Artifact.State.LIVE
    ]
    return {uri: files(world.folder / uri) for uri in folders}


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_first_run(base: BaseRun) -> None:
    done = base.finished
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == COMPONENTS
    # Nothing of what the frameworks have to say.
    assert all(line.startswith("  training  ") for line in done.err.splitlines()), done.err
    assert "k = 20" in done.out
    assert "Blessed: all 6 gates passed." in done.out
    told = dict(line.split(maxsplit=1) for line in done.out.splitlines()[-5:])
    assert (base.folder / told["report"]).read_text("utf-8").startswith("<!")
    assert Path(told["release"]) == base.releases[-1]
    assert (base.folder / told["run"] / "metadata.sqlite").exists()
    assert told["try"].startswith("pebr query --release ")
    # Transform leaves some of its own empty.
    ours = {uri: names for uri, names in live(base).items() if "/Transform/" not in uri}
    assert [uri for uri, names in ours.items() if not names] == [], "an artifact without a file"


def test_its_release_answers(base: BaseRun) -> None:
    answer = subprocess.run(
        [PEBR, "query", "--release", "releases", "huawei phone", "华为手机"],
        cwd=base.folder,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert answer.stderr == ""
    english, chinese = answer.stdout.split("\n\n")
    assert english.startswith("huawei phone  ")
    assert "huawei phone" in english.splitlines()[1]
    assert chinese.startswith("华为手机  ")
    assert "华为手机" in chinese.splitlines()[1]


def test_its_release_answers_in_json(base: BaseRun) -> None:
    done = pebr(
        base.folder, "query", "--release", "releases", "--json", "--top-k", "4", "小米冰箱", "red"
    )
    assert done.code == 0, done.err
    chinese, english = map(json.loads, done.out.splitlines())
    assert chinese["query"] == "小米冰箱"
    assert chinese["count"] == 4
    # There are four of them, one a colour.
    assert sum(item["title"].startswith("小米冰箱") for item in chinese["items"]) >= 2
    scores = [item["score"] for item in english["items"]]
    assert scores == sorted(scores, reverse=True)


def test_the_query_model_needs_tensorflow_only(base: BaseRun) -> None:
    script = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
text = tf.constant(["huawei phone", "华为手机", "?"])
feature = lambda text: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text.encode()]))
example = tf.train.Example(features=tf.train.Features(
    feature={"query": feature("华为手机"), "title": feature("华为手机黑色")}))
inputs = {
    "serving_default": {"query": text},
    "query_at": {"query": text, "cutoff": tf.constant([.5, .8, .9])},
    "item": {"title": text},
    "serialized_examples": {"examples": tf.constant([example.SerializeToString()])},
}
outputs = {name: model.signatures[name](**inputs[name]) for name in model.signatures}
norms = [float(value) for value in tf.norm(outputs["serving_default"]["embedding"], axis=1)]
ours = [name for name in sys.modules if name.split(".")[0] in sys.argv[2:]]
shapes = {name: {key: list(value.shape) for key, value in each.items()}
          for name, each in outputs.items()}
print(json.dumps({"shapes": shapes, "norms": norms, "ours": ours}))
"""
    ours = ("pebr_tf", "serving", "components", "tfx", "scann", "tensorflow_transform")
    done = subprocess.run(
        [sys.executable, "-I", "-c", script, str(base.releases[-1] / "query_model"), *ours],
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    found = json.loads(done.stdout)
    assert found["ours"] == []
    assert found["norms"] == pytest.approx([1, 1, 1], abs=1e-5)
    numbers = ("tau", "alpha", "beta", "background_alpha", "background_beta", "level", "threshold")
    query = {"embedding": [3, 16], **{name: [3] for name in numbers}}
    shapes = found["shapes"]
    assert set(shapes) == {"serving_default", "query_at", "item", "serialized_examples"}
    assert shapes["serving_default"].items() >= query.items()
    assert shapes["query_at"].items() >= query.items()
    assert shapes["item"] == {"embedding": [3, 16]}
    both = {"query_embedding": [1, 16], "item_embedding": [1, 16]}
    assert shapes["serialized_examples"].items() >= both.items()


def test_a_second_run_does_nothing_again(world: World) -> None:
    releases = world.releases
    done = pebr(world.folder, *RUN)
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS
    assert done.ran() == [ALWAYS]
    assert world.releases == releases
    assert "Blessed" in done.out, "the table is there as before"


def test_an_edit_of_code_runs_what_depends_on_it(world: World) -> None:
    done = pebr(world.folder, *RUN, hooks=[edited(SOURCES["RetrievalEvaluator"])])
    assert done.code == 0, done.err
    assert done.ran() == [ALWAYS, "RetrievalEvaluator", "Pusher"]
    assert len(world.releases) == 2
    evaluation = ModelEvaluation.load(world.releases[-1])
    assert evaluation.previous.version == int(world.releases[0].name)


def test_a_failed_gate(world: World) -> None:
    """Also: a setting runs what reads it, and what depends on that."""
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
        assert len(world.releases) == 1


def test_until_and_no_cache(world: World) -> None:
    done = pebr(world.folder, *RUN, "--until", "Transform")
    assert done.code == 0, done.err
    assert list(done.states()) == COMPONENTS[:5]
    assert done.ran() == [ALWAYS]
    assert "k = 20" not in done.out
    done = pebr(world.folder, *RUN, "--until", "SchemaGen", "--no-cache")
    assert done.ran() == COMPONENTS[:3]
    done = pebr(world.folder, *RUN, "--until", "Evaluator")
    assert done.code == 2
    assert done.err.startswith("pebr: --until must be one of ClickLogExampleGen, ")
    assert done.err.endswith(" Received: Evaluator.\n")


KILLS = {
    "ClickLogExampleGen": killed_at("components.click_log_example_gen.publish", "place_letters"),
    "ExampleValidator": killed_at("components.example_validator.executor", "_report"),
    "Trainer": killed_in_training(75),
    "IndexBuilder": killed_at("components.index_builder.executor", "write_artifact", after=True),
    "CutoffCalibrator": killed_at(
        "components.cutoff_calibrator.executor", "export_query_model", after=True
    ),
    "RetrievalEvaluator": killed_at("components.retrieval_evaluator.executor", "_bless"),
    "Pusher": killed_at("serving.release", "_appear"),
}


@pytest.mark.parametrize("component", KILLS)
def test_a_kill_in_the_middle(world: World, component: str) -> None:
    arguments = (*RUN, "--until", component)
    edit, kill = edited(SOURCES[component]), KILLS[component]
    before, releases = live(world), world.releases
    killed = pebr(world.folder, *arguments, hooks=[edit, kill])
    assert killed.code == -signal.SIGKILL, killed.err
    after = live(world)
    new = {uri for uri in after if uri not in before}
    assert not [uri for uri in new if f"/{component}/" in uri], "half an artifact"
    assert {uri: after[uri] for uri in before} == before
    assert world.releases == releases

    done = pebr(world.folder, *arguments, hooks=[edit])
    assert done.code == 0, done.err
    assert done.ran() == ([component] if component in COMPONENTS[:4] else [ALWAYS, component])
    outputs = {uri: names for uri, names in live(world).items() if f"/{component}/" in uri}
    made = [names for uri, names in outputs.items() if uri not in before]
    assert made
    # Files of the same names as the run that nothing disturbed has written; but for what
    # TensorBoard names after the time.
    expected = [names for uri, names in outputs.items() if uri in before]
    assert set(map(_lasting, made)) == set(map(_lasting, expected))
    if component == "Trainer":
        # The last checkpoint was at step 40.
        assert done.err.splitlines()[0].startswith("  training  50 of 100 steps")
        assert not list((world.folder / "run/checkpoints").iterdir())
    if component == "Pusher":
        assert len(world.releases) == len(releases) + 1
        assert not list((world.folder / "releases").glob(".*")), "the killed push is cleared away"


def _lasting(names: set[str]) -> frozenset[str]:
    return frozenset(name for name in names if "tfevents" not in name)


def test_one_run_at_a_time(world: World) -> None:
    pipe = world.folder / "pipe"
    os.mkfifo(pipe)
    first = Running(
        world.folder,
        *(*RUN, "--until", "SchemaGen", "--no-cache"),
        hooks=[waiting_at("components.click_log_example_gen.publish", "place_letters", pipe)],
    )
    # Opens as soon as the first run reads it.
    with pipe.open("w"):
        second = pebr(world.folder, *RUN)
    assert second.code == 2
    assert second.err == (
        "pebr: pipeline.root must be used by one run at a time. Received: run, where process "
        f"{first.pid} is at work.\n"
    )
    assert first.finish().code == 0


def test_an_interrupt_leaves_a_sentence(world: World) -> None:
    pipe = world.folder / "pipe"
    os.mkfifo(pipe)
    running = Running(
        world.folder,
        *(*RUN, "--until", "SchemaGen", "--no-cache"),
        hooks=[waiting_at("components.click_log_example_gen.publish", "place_letters", pipe)],
    )
    with pipe.open("w"):
        os.kill(running.pid, signal.SIGINT)
        done = running.finish()
    assert done.code == 130
    assert done.err == "pebr: interrupted; another run goes on from here.\n"
    assert pebr(world.folder, *RUN, "--until", "SchemaGen").code == 0


def test_a_fault_of_ours_shows_where(world: World) -> None:
    done = pebr(
        world.folder,
        *(*RUN, "--until", "SchemaGen", "--no-cache"),
        hooks=[
            failing_at(
                "components.click_log_example_gen.publish", "place_letters", ValueError("a bug")
            )
        ],
    )
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert "ValueError: a bug" in done.err
