"""The compiled jobs as Vertex AI runs them: every executor in the container entry point of TFX."""

import json
from pathlib import Path

import numpy as np
import pytest
from containers import in_order

from pebr_tf.release.release import Release
from serving.retriever import Retriever

pytestmark = pytest.mark.slow

QUERIES = ["huawei phone", "华为手机", "red", "小米冰箱", "shoes"]
ENTRYPOINT = ["python", "-m", "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor"]


def pushed(runs):
    (release,) = runs.outputs["whole"]["Pusher"]["release"]
    path = json.loads((runs.folder / release["uri"] / "release.json").read_text("utf-8"))["path"]
    assert release["metadata"]["pushed"] == 1
    assert release["metadata"]["version"] == int(Path(path).name)
    return Path(path)


def answers(release, **knob):
    found = Retriever.load(release).retrieve(QUERIES, **knob).items
    return [
        tuple(values.tolist() for values in found.row(row))  # type: ignore[misc]
        for row in range(len(QUERIES))
    ]


def test_every_container_uses_the_tfx_entry_point(cloud_runs):
    for name, job in cloud_runs.jobs.items():
        executors = job["pipelineSpec"]["deploymentSpec"]["executors"]
        containers = {key: one["container"] for key, one in executors.items() if "container" in one}
        assert len(containers) == (11 if name == "whole" else 9)
        assert all(each["command"] == ENTRYPOINT for each in containers.values())
        ordered = in_order(job["pipelineSpec"]["root"]["dag"]["tasks"])
        finished = list(cloud_runs.outputs[name])
        assert finished == ordered[: len(finished)]
        assert finished[-1] == ("Pusher" if name == "whole" else "IndexBuilder")
    assert "Starting executor" in cloud_runs.log["Transform"]
    assert "ClickLogExampleGen driver" in cloud_runs.log


def test_the_release_returns_the_results_of_a_local_run(base, cloud_runs):
    assert base.finished.code == 0, base.finished.err
    release = pushed(cloud_runs)
    Release.load(release)
    local, remote = (answers(path, knob="top_k", value=10) for path in (base.releases[0], release))
    for (_, here), (_, there) in zip(local, remote, strict=True):
        # Equal weights except for rounding: the order of summation differs.
        assert there == pytest.approx(here, abs=1e-3)
    shared = [
        len({*ours} & {*theirs}) for (ours, _), (theirs, _) in zip(local, remote, strict=True)
    ]
    assert min(shared) >= 8
    lengths = [[len(ids) for ids, _ in answers(path)] for path in (base.releases[0], release)]
    assert lengths[1] == pytest.approx(lengths[0], rel=0.1, abs=2)


def test_the_index_only_job_takes_the_pushed_model(cloud_runs):
    whole, index = cloud_runs.outputs["whole"], cloud_runs.outputs["index"]
    first, second = (
        cloud_runs.folder / each["LastBlessedModel"]["model"][0]["uri"] for each in (whole, index)
    )
    assert [path.name for path in first.iterdir()] == ["no_model.txt"]
    pointer = json.loads((second / "blessed_model.json").read_text("utf-8"))
    assert pointer["model"] == int(pushed(cloud_runs).name)
    trained = cloud_runs.folder / whole["Trainer"]["model"][0]["uri"] / "Format-Serving"
    names = [str(path.relative_to(trained)) for path in trained.rglob("*") if path.is_file()]
    assert names
    for name in names:
        assert (second / "Format-Serving" / name).read_bytes() == (trained / name).read_bytes()
    # The index-only run embeds the same catalogue with the same towers.
    before, after = (
        np.load(cloud_runs.folder / each["IndexBuilder"]["index"][0]["uri"] / "index/vectors.npy")
        for each in (whole, index)
    )
    np.testing.assert_allclose(before, after, atol=1e-6)


def test_the_second_run_compares_with_the_first(cloud_runs):
    compared = [
        json.loads((cloud_runs.folder / anomalies["uri"] / "anomalies.json").read_text("utf-8"))
        for job in ("whole", "index")
        for anomalies in cloud_runs.outputs[job]["ExampleValidator"]["anomalies"]
    ]
    assert [each["compared_with_last_accepted_run"] for each in compared] == [False, True]
