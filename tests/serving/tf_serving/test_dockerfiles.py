"""The images are pinned, do not run as root, and use files and options that exist."""

import ast
import json
import re
from pathlib import Path

import pytest
from dockerfiles import Dockerfile

import serving.tf_serving
from pebr_tf.config import Serving

FOLDER = Path(serving.tf_serving.__file__).parent
ROOT = FOLDER.parents[1]
NAMES = sorted(path.name for path in FOLDER.glob("Dockerfile.*") if path.suffix != ".dockerignore")
# Flags of tensorflow_model_server 2.16, as its main.cc spells them.
SERVER_FLAGS = {
    *("port", "rest_api_port", "model_name", "model_base_path", "model_config_file"),
    *("file_system_poll_wait_seconds", "max_num_load_retries", "load_retry_interval_micros"),
    *("enable_batching", "batching_parameters_file", "monitoring_config_file"),
    *("tensorflow_intra_op_parallelism", "tensorflow_inter_op_parallelism"),
}


def read(name):
    return Dockerfile(FOLDER / name)


def values(name, instruction):
    return read(name).values(instruction)


@pytest.mark.parametrize("name", NAMES)
def test_an_image_is_pinned_complete_and_does_not_run_as_root(name):
    file = read(name)
    for image, _ in file.images():
        assert re.search(r":\d+\.\d+\.\d+(-[a-z]+)*$", image), image
        assert image.partition(":")[0] in ("tensorflow/serving", "python")
    assert file.stages_copied_from() <= {stage for _, stage in file.images()}
    for source, _ in file.copies():
        assert (ROOT / source).exists(), source
        assert not file.ignores(source), source
    (user,) = file.values("USER")
    assert ("USER", user) in file.stages()[-1]
    # A number, because runAsNonRoot cannot check a name.
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    # Commands are lists, because a shell would not forward SIGTERM.
    for instruction in ("ENTRYPOINT", "CMD"):
        (value,) = file.values(instruction)
        assert all(isinstance(each, str) for each in json.loads(value))
    (check,) = file.values("HEALTHCHECK")
    assert json.loads(check.partition("CMD ")[2])
    assert file.complaints() == ""


@pytest.mark.parametrize("name", ["Dockerfile.query_model", "Dockerfile.retrieve"])
def test_the_flags_of_the_model_server_exist_and_its_files_are_copied(name):
    (command,) = values(name, "CMD")
    copied = {f"/etc/pebr/{Path(source).name}" for source, _ in read(name).copies()}
    for flag in json.loads(command):
        key, _, value = flag.removeprefix("--").partition("=")
        assert key in SERVER_FLAGS
        if key.endswith("_file"):
            assert value in copied
    flags = dict(flag.removeprefix("--").split("=") for flag in json.loads(command))
    assert [flags["port"], flags["rest_api_port"]] == values(name, "EXPOSE")[0].split()


def test_the_scann_of_the_image_is_that_of_the_lock():
    lock = (ROOT / "requirements" / "native.txt").read_text()
    version = re.search(r"^scann==(\S+)", lock, re.MULTILINE).group(1)
    assert f"whose scann/ is version {version}," in (FOLDER / "Dockerfile.retrieve").read_text()
    tensorflow = re.search(r"^tensorflow==(\d+\.\d+)", lock, re.MULTILINE).group(1)
    for name in ("Dockerfile.query_model", "Dockerfile.retrieve"):
        for image in values(name, "FROM"):
            assert image.startswith(f"tensorflow/serving:{tensorflow}.")


def test_the_service_is_started_with_options_that_it_has():
    from serving.cli.serve import serve

    (entry,), (command,) = (values("Dockerfile.service", each) for each in ("ENTRYPOINT", "CMD"))
    assert json.loads(entry) == ["pebr"]
    subcommand, *arguments = json.loads(command)
    assert subcommand == serve.name
    options = {name for each in serve.params for name in each.opts}
    assert {each for each in arguments if each.startswith("--")} <= options
    ports = values("Dockerfile.service", "EXPOSE")[0].split()
    assert [int(port) for port in ports] == [Serving().grpc_port, Serving().http_port]

    (check,) = values("Dockerfile.service", "HEALTHCHECK")
    program, flag, code = json.loads(check.partition("CMD ")[2])
    assert (program, flag) == ("python", "-c")
    ast.parse(code)
    assert f"http://127.0.0.1:{Serving().http_port}/readyz" in code
    runs = " ".join(values("Dockerfile.service", "RUN"))
    for lock in ("requirements/uv.txt", "requirements/service.txt"):
        assert re.search(rf"--require-hashes[^&]*{re.escape(lock)}", runs)
