"""The pipeline image: pinned, not root, and complete: its wheel has all that containers import."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
from dockerfiles import Dockerfile
from vertex_server import cloud_config

import pipeline
from pipeline.kubeflow_v2_runner import compile_job, to_bytes

ROOT = Path(pipeline.__file__).parents[1]
IMAGE = Dockerfile(ROOT / "pipeline" / "Dockerfile")
ENVIRONMENT = "/opt/pebr"
BOOT = "/opt/apache/beam/boot"
PACKAGES = ("pebr_tf", "components", "pipeline", "serving")
# What starts a container: a component, a worker of the training, a worker of Dataflow.
ENTRY_POINTS = [
    "tfx.orchestration.kubeflow.v2.container.kubeflow_v2_run_executor",
    "tfx.scripts.run_executor",
    "apache_beam.runners.worker.sdk_worker_main",
]
# Imports the entry points, all modules, and what the nodes give by name, as the entry points of TFX
# do; prints where Keras and the modules of this project come from, and a compiled job.
IMPORTS = """
import importlib, json, pkgutil, sys
packages, entry_points = (argument.split() for argument in sys.argv[1:])
for entry_point in entry_points:
    importlib.import_module(entry_point)
import components, pipeline
for package in (components, pipeline):
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
import tensorflow
from pebr_tf.config import Config
from pipeline.kubeflow_v2_runner import compile_job, to_bytes
from pipeline.pipeline import components_of
from tfx.dsl.components.base.base_component import BaseComponent
from tfx.utils import import_utils
names = []
for node in components_of(Config()):
    if isinstance(node, BaseComponent):
        found = [import_utils.import_class_by_path(node.executor_spec.class_path)]
        for key in ("run_fn", "preprocessing_fn"):
            if path := node.exec_properties.get(key):
                found.append(import_utils.import_func_from_module(*path.rsplit(".", 1)))
        names += [f"{each.__module__}.{each.__qualname__}" for each in found]
ours = {name: module for name, module in sys.modules.items() if name.split(".")[0] in packages}
print(json.dumps({
    "files": {name: module.__file__ for name, module in ours.items()},
    "keras": tensorflow.keras.layers.Layer.__module__,
    "names": names,
    "job": to_bytes(compile_job(Config.from_yaml(sys.stdin.read()))).decode(),
}))
"""


def commands():
    return [each.strip() for value in IMAGE.values("RUN") for each in value.split("&&")]


def variables():
    (value,) = IMAGE.values("ENV")
    return dict(each.split("=", 1) for each in shlex.split(value))


def test_hadolint():
    assert IMAGE.complaints() == ""


def test_images_are_pinned_to_whole_versions_of_the_version_set():
    (beam, beam_stage), (build, build_stage), (final, final_stage) = IMAGE.images()
    python = (ROOT / ".python-version").read_text().strip()
    lock = (ROOT / "requirements" / "pipeline.txt").read_text()
    (locked,) = re.findall(r"^apache-beam(?:\[.*\])?==(\S+)", lock, re.MULTILINE)
    assert beam == f"apache/beam_python{python}_sdk:{locked}"
    version = re.fullmatch(rf"python:({re.escape(python)}\.\d+)-bookworm", build).group(1)
    assert final == f"python:{version}-slim-bookworm"
    assert IMAGE.stages_copied_from() == {beam_stage, build_stage}
    assert final_stage is None


def test_it_does_not_run_as_root():
    (user,) = IMAGE.values("USER")
    assert ("USER", user) in IMAGE.stages()[-1]
    # A number: runAsNonRoot cannot tell who a name is.
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)
    number, group = user.split(":")
    (made,) = (each for each in commands() if each.startswith("useradd"))
    assert f"--uid {number} --gid {group} --create-home" in made
    home = f"/home/{made.split()[-1]}"
    assert variables()["HOME"] == home
    assert IMAGE.values("WORKDIR")[-1] == home


def test_boot_is_started_without_a_shell_and_finds_beam():
    (entry,) = IMAGE.values("ENTRYPOINT")
    assert json.loads(entry) == [BOOT]
    assert IMAGE.values("CMD") == []
    folder = str(Path(BOOT).parent)
    assert f"--from=beam {folder} {folder}" in IMAGE.values("COPY")
    assert variables()["PATH"] == f"{ENVIRONMENT}/bin:$PATH"
    assert variables()["RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT"] == "1"
    # As it is, with pip; uv has no pip in what it makes.
    assert f"python -m venv {ENVIRONMENT}" in commands()


def test_what_is_copied_exists_and_is_not_ignored():
    for source, _ in IMAGE.copies():
        assert (ROOT / source).exists(), source
        assert not IMAGE.ignores(source), source


def test_packages_are_locked_by_hashes_and_compiled():
    pip, sync, install = (each for each in commands() if re.match(r"(uv )?pip ", each))
    assert "--require-hashes -r requirements/uv.txt" in pip
    assert "--require-hashes" in sync
    assert sync.endswith(f'--python {ENVIRONMENT}/bin/python "requirements/${{LOCK}}.txt"')
    assert "--no-deps" in install
    assert install.endswith(f"--python {ENVIRONMENT}/bin/python .")
    assert all("--compile-bytecode" in each for each in (sync, install))
    assert IMAGE.values("ARG") == ["LOCK=pipeline"]
    copied = {source for source, _ in IMAGE.copies()}
    assert {f"requirements/{name}.txt" for name in ("uv", "pipeline", "gpu")} <= copied


def test_what_runs_has_no_tool_of_the_build():
    final = IMAGE.stages()[-1]
    copied = [value.split()[1] for name, value in final if name == "COPY"]
    assert copied == [str(Path(BOOT).parent), ENVIRONMENT]
    (run,) = (value for name, value in final if name == "RUN")
    assert not re.search(r"\b(apt-get|pip|uv|gcc)\b", run)


@pytest.mark.parametrize("libraries", [(), ("cudnn", "nvjitlink")])
def test_the_loader_is_told_of_the_cuda_libraries(tmp_path, libraries):
    (search,) = (each for each in commands() if each.startswith("find"))
    command, _, target = search.partition(" > ")
    assert re.fullmatch(r"/etc/ld\.so\.conf\.d/\S+\.conf", target)
    assert commands()[commands().index(search) + 1] == "ldconfig"
    packages = tmp_path / "lib" / "python3.10" / "site-packages"
    wanted = {packages / "nvidia" / each / "lib" for each in libraries}
    for folder in (*wanted, packages / "numpy" / "lib"):
        folder.mkdir(parents=True)
    result = subprocess.run(
        shlex.split(command.replace(ENVIRONMENT, str(tmp_path))),
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(map(Path, result.stdout.splitlines())) == wanted


@pytest.fixture(scope="module")
def context(tmp_path_factory):
    """A folder with what the Dockerfile copies of the project, and nothing else."""
    folder = tmp_path_factory.mktemp("context")
    for source, destination in IMAGE.copies():
        origin, target = ROOT / source, folder / destination
        if origin.is_dir():
            shutil.copytree(origin, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.mkdir(exist_ok=True)
            shutil.copy(origin, target)
    return folder


@pytest.fixture(scope="module")
def wheel(context, tmp_path_factory):
    """The wheel that is built of it, as a build without isolation does."""
    folder = tmp_path_factory.mktemp("wheel")
    build = "import sys, setuptools.build_meta as backend; backend.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", build, str(folder)], cwd=context, check=True)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A virtual environment with the wheel and the locked packages, but not this folder.

    A path in a .pth file is not searched for .pth files: the finder of the editable install, which
    would bring this folder back, stays out.
    """
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "locked.pth").write_text(sysconfig.get_path("purelib"))
    return folder


@pytest.fixture(scope="module")
def found(installed):
    """What a container would import and compile, with the image's variables but its folders."""
    home = installed / "home"
    home.mkdir()
    folders = {"PATH": str(installed / "bin"), "HOME": str(home)}
    code = [IMPORTS, " ".join(PACKAGES), " ".join(ENTRY_POINTS)]
    result = subprocess.run(
        # Isolated, and so with another order of sets than here.
        [installed / "bin" / "python", "-I", "-c", *code],
        input=cloud_config().to_yaml(),
        env=variables() | folders,
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


@pytest.mark.slow
def test_the_wheel_has_every_module_and_its_data(context, wheel):
    needed = {
        str(path.relative_to(context))
        for package in PACKAGES
        for path in (context / package).rglob("*")
        if path.suffix in (".py", ".proto") or path.parent.name == "static"
    }
    assert {"serving/explorer/static/index.html", "serving/proto/retrieval.proto"} <= needed
    with zipfile.ZipFile(wheel) as archive:
        assert needed - set(archive.namelist()) == set()
        (scripts,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
        assert b"pebr = pebr_tf.cli.main:main" in archive.read(scripts)


@pytest.mark.slow
def test_entry_points_import_the_wheel_with_keras_2(installed, found):
    for path in found["files"].values():
        assert Path(path).is_relative_to(installed), path
    assert found["keras"].startswith("tf_keras.")
    assert {"components.pusher.executor", "pipeline.trainer"} <= found["files"].keys()
    assert {
        "components.click_log_example_gen.executor.ClickLogExampleGenExecutor",
        "pipeline.preprocessing.preprocessing_fn",
        "pipeline.trainer.run_fn",
    } <= set(found["names"])


@pytest.mark.slow
def test_the_same_input_gives_the_same_job_in_any_process(found):
    assert found["job"] == to_bytes(compile_job(cloud_config())).decode()
