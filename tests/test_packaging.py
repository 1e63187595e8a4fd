"""What is installed: the packages of the wheel, the extras, and locks that hold every import."""

import re
import runpy
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution

import pytest
import setuptools
from import_graph import PACKAGES, RESEARCH, ROOT, files, imported_names
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# The lock that a package's imports must come from.
LOCK_OF = {
    **dict.fromkeys(("pebr_tf", "serving"), "service"),
    **dict.fromkeys(("components", "pipeline"), "pipeline"),
    **dict.fromkeys(RESEARCH, "modern"),
}
SETS = ("native", "modern")
TOOLS = {"pytest", "ruff", "mypy", "hypothesis"}
# Of the extra `kubeflow`, which is in no lock; without it a command says so.
UNLOCKED = {"kfp_server_api"}


def locked(lock):
    """{package: version} of requirements/LOCK.txt; every package has a hash."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text().replace("\\\n", "")
    found = re.findall(r"^([a-z0-9][\w.-]*)==(\S+)(.*)$", text, re.MULTILINE)
    assert all("--hash=sha256:" in rest for _, _, rest in found)
    return {package: version for package, version, _ in found}


@cache
def installed_by(package):
    """Top-level modules that a package installs; of `google`, the level below.

    Nothing for a package that is in the other set only.
    """
    found = set()
    try:
        record = distribution(package).read_text("RECORD")
    except PackageNotFoundError:
        return found
    for line in record.splitlines():
        parts = line.partition(",")[0].split("/")
        depth = 2 if parts[0] == "google" else 1
        found.add(".".join(parts[:depth]).split(".py")[0].split(".cpython")[0])
    return found


@pytest.fixture(scope="module")
def arguments():
    with pytest.MonkeyPatch.context() as patch:
        found = {}
        patch.setattr(setuptools, "setup", lambda **given: found.update(given))
        patch.chdir(ROOT)
        runpy.run_path(str(ROOT / "setup.py"))
    return found


def test_the_wheel_holds_the_four_packages_only(arguments):
    assert {name.split(".")[0] for name in arguments["packages"]} == set(PACKAGES)
    folders = {path.parent for package in PACKAGES for path in files(package).values()}
    assert {ROOT / name.replace(".", "/") for name in arguments["packages"]} == folders


def test_the_base_install_has_neither_tfx_nor_beam(arguments):
    base, extras = arguments["install_requires"], arguments["extras_require"]
    assert set(extras) == {"pipeline", "cloud", "kubeflow", "experiments"}
    assert not [line for line in base if re.match("tfx|apache-beam|matplotlib|scikit", line)]
    assert [line for line in extras["pipeline"] if re.match("tfx|apache-beam", line)] == [
        'apache-beam==2.61.0; python_version < "3.11"',
        'apache-beam==2.77.0; python_version >= "3.11"',
        'tfx==1.16.0; python_version < "3.11"',
        'tfx==1.21.0; python_version >= "3.11"',
    ]
    assert not {"tfx", "apache-beam", *TOOLS} & locked("service").keys()
    assert not TOOLS & locked("pipeline").keys()


def test_every_pin_is_in_the_lock_of_its_set(arguments):
    """What `pip install` takes on a version of Python is what its lock was tested with."""
    assert arguments["python_requires"] == ">=3.10,<3.14"
    lines = [*arguments["install_requires"]]
    lines += [line for name in ("pipeline", "cloud") for line in arguments["extras_require"][name]]
    for python, name in zip(("3.10", "3.11"), SETS, strict=True):
        requirements = [Requirement(line) for line in lines]
        wanted = [
            each
            for each in requirements
            if each.marker is None or each.marker.evaluate({"python_version": python})
        ]
        for each in wanted:
            assert each.specifier.contains(locked(name)[canonicalize_name(each.name)]), each
        assert {"tensorflow", "scann", "tfx"} <= {each.name for each in wanted}


def test_the_locks_of_images_agree_with_modern():
    assert locked("service").items() <= locked("pipeline").items() <= locked("modern").items()
    assert locked("pipeline").items() <= locked("gpu").items()
    added = locked("gpu").keys() - locked("pipeline").keys()
    assert {"nvidia-cudnn-cu12", "nvidia-cuda-runtime-cu12"} <= added
    assert all(each.startswith("nvidia-") for each in added)


@pytest.mark.parametrize("package", PACKAGES + RESEARCH)
def test_every_import_is_in_the_lock_of_its_image_and_none_is_a_tool(package):
    available = {each: set().union(*map(installed_by, locked(each))) for each in LOCK_OF.values()}
    own = {*PACKAGES, *RESEARCH, *sys.stdlib_module_names, *UNLOCKED}
    for module in files(package):
        # Only the pipeline writes reports.
        lock = "pipeline" if module.startswith("pebr_tf.report") else LOCK_OF[package]
        for name in imported_names(module):
            parts = name.split(".")
            root = ".".join(parts[: 2 if parts[0] == "google" else 1])
            assert parts[0] in own or root in available[lock], (module, name, lock)
            assert parts[0] not in TOOLS, module


@pytest.mark.skipif(sys.version_info >= (3, 11), reason="set native generates them")
def test_stubs_are_what_make_proto_writes(tmp_path):
    outputs = [f"--python_out={tmp_path}", f"--grpc_python_out={tmp_path}"]
    command = [sys.executable, "-W", "ignore", "-m", "grpc_tools.protoc", "-I.", *outputs]
    subprocess.run([*command, "serving/proto/retrieval.proto"], cwd=ROOT, check=True)
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.py")]
    assert len(written) == 2
    for path in written:
        assert (ROOT / path).read_text() == (tmp_path / path).read_text(), "run make proto"
