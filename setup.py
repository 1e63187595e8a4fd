"""Packaging: one distribution of four packages, with extras for what only some users need."""

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
PACKAGES = ("pebr_tf", "components", "pipeline", "serving")


def version() -> str:
    """The version that `pebr_tf.__version__` states."""
    text = (ROOT / "pebr_tf" / "__init__.py").read_text(encoding="utf-8")
    return re.search(r'^__version__ = "(.+)"$', text, re.MULTILINE).group(1)


def requirements(name: str) -> list[str]:
    """The requirements of requirements/NAME.in, from which the locks are made."""
    lines = (ROOT / "requirements" / f"{name}.in").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


setup(
    name="pebr-tf",
    version=version(),
    description="Probabilistic embedding-based retrieval: training pipeline, search and serving.",
    long_description=(ROOT / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=[f"{p}{s}" for p in PACKAGES for s in ("", ".*")]),
    include_package_data=True,
    install_requires=requirements("service"),
    extras_require={
        name: requirements(name) for name in ("pipeline", "cloud", "kubeflow", "experiments")
    },
    entry_points={
        "console_scripts": ["pebr = pebr_tf.cli.main:main"],
        # Each package lists its subcommands of `pebr`; `pebr_tf.cli.main` joins the lists.
        "pebr_tf.commands": [
            f"{package} = {package}.cli:COMMANDS" for package in ("pebr_tf", "serving", "pipeline")
        ],
    },
)
