"""What `pebr run` refuses about engines under Beam: every sentence."""

import socket
from pathlib import Path

import pytest

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline import engine_check
from pipeline.cloud_check import require_none
from pipeline.engine_check import problems, worker_problems
from pipeline.source import project_digest

ABSOLUTE = {
    "pipeline.root": "/srv/run",
    "data.click_log": "/srv/log.csv",
    "data.catalogue": "s3://shop/items.csv",
}
IMAGE = "--sdk_container_image=none"


@pytest.fixture
def endpoint():
    """The address of a server that accepts connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def found(*arguments, **changes):
    return problems(Config().replace_all({**changes, "pipeline.beam_args": list(arguments)}))


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--runner=DirectRunner", "--direct_num_workers=2"),
        ("--runner", "direct"),
        ("--direct_running_mode=multi_processing",),
    ],
)
def test_relative_paths_are_right_in_process(arguments):
    assert found(*arguments) == []


def test_a_bucket_is_no_root_of_a_run_here():
    sentence = (
        "pipeline.root must be a local folder for pebr run; pebr submit runs elsewhere. Received: "
        "'gs://shop/run'."
    )
    assert found(**{"pipeline.root": "gs://shop/run"}) == [sentence]
    with pytest.raises(UserError) as error:
        require_none([sentence], "local")
    assert str(error.value) == sentence


def test_workers_of_an_engine_need_absolute_paths(endpoint):
    flags = ("--runner=PortableRunner", f"--job_endpoint={endpoint}", IMAGE)
    where = "be an absolute path, which the workers of Beam reach"
    assert found(*flags) == [
        f"pipeline.root must {where}. Received: 'run'.",
        f"data.click_log must {where}. Received: 'data/clicks/*'.",
        f"data.catalogue must {where}. Received: 'data/catalogue/*'.",
    ]
    assert found(*flags, **ABSOLUTE) == []
    more = r"and 2 more: pebr check --target local --config FILE lists them"
    with pytest.raises(UserError, match=rf"'run' \({more}\)\.$"):
        require_none(found(*flags), "local")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("--runner=DataflowRunner", "--region=europe-west4", "--project=shop", IMAGE),
            "have --temp_location beside --runner=DataflowRunner. Received: none.",
        ),
        (
            ("--runner=FlinkRunner", "--flink_master=host:8081", IMAGE),
            "have --flink_version beside --runner=FlinkRunner. Received: none.",
        ),
        (
            ("--job_endpoint=host:8099",),
            "have --runner=PortableRunner beside --job_endpoint. Received: no runner.",
        ),
        (
            ("--runner=DirectRunner", "--region=europe-west4"),
            "have --runner=DataflowRunner beside --region. Received: DirectRunner.",
        ),
        (
            ("--runner=PortableRunner", IMAGE),
            "have --job_endpoint beside --runner=PortableRunner. Received: none.",
        ),
    ],
)
def test_arguments_need_their_partners(arguments, sentence):
    assert f"pipeline.beam_args must {sentence}" in found(*arguments, **ABSOLUTE)


def test_an_external_environment_needs_its_address_and_what_workers_have(endpoint):
    flags = (
        "--runner=PortableRunner",
        f"--job_endpoint={endpoint}",
        "--environment_type=EXTERNAL",
    )
    assert found(*flags, **ABSOLUTE) == [
        "pipeline.beam_args must have --sdk_container_image beside --runner=PortableRunner. "
        "Received: none.",
        "pipeline.beam_args must have --environment_config beside --environment_type. Received: "
        "none.",
    ]
    assert found(*flags, "--environment_config=localhost:50000", IMAGE, **ABSOLUTE) == []


def test_a_job_endpoint_that_nobody_answers(endpoint):
    with socket.create_server(("127.0.0.1", 0)) as server:
        gone = f"127.0.0.1:{server.getsockname()[1]}"
    for address, reason in ((gone, "Connection refused"), ("host", "invalid literal")):
        (sentence,) = found(
            "--runner=PortableRunner", f"--job_endpoint={address}", IMAGE, **ABSOLUTE
        )
        assert sentence.startswith(
            "pipeline.beam_args must name a --job_endpoint that answers, as host:port. "
            f"Received: '{address}', "
        )
        assert reason in sentence


def test_workers_have_the_version_that_is_here(tmp_path, monkeypatch):
    """By Beam's runner in this process, as if it were an engine."""
    monkeypatch.setattr(engine_check, "IN_PROCESS", ())
    config = Config().replace("pipeline.root", str(tmp_path / "run"))
    assert worker_problems(config) == []
    monkeypatch.setattr(engine_check, "_write_digest", lambda path: Path(path).write_text("other"))
    assert worker_problems(config) == [
        "Workers of Beam must have the version of the project that is here, source "
        f"{project_digest()[:12]}. Received: other."
    ]
    monkeypatch.setattr(engine_check, "_write_digest", lambda path: None)
    (sentence,) = worker_problems(config)
    assert sentence.startswith("Workers of Beam must run a job of one element. Received: [Errno 2]")
    assert list((tmp_path / "run").iterdir()) == []
