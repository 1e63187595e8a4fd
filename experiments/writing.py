"""Writes an experiment: figures, tables, plots and the page, all of them or none."""

import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.markdown import markdown
from experiments.page import page
from experiments.plots import drawn
from experiments.results import ExperimentResults
from pebr_tf.errors import UserError

FIGURES, TABLES, PAGE = "figures.json", "tables.md", "index.html"


def write_results(results: ExperimentResults, directory: Path) -> Path:
    """Writes an experiment's folder, in place of an older one.

    Args:
      results: What was found.
      directory: The folder.

    Returns:
      The page.

    Raises:
      UserError: The folder holds something else.
    """
    require_ours(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as work:
        scratch = Path(work) / "new"
        scratch.mkdir()
        (scratch / FIGURES).write_text(
            json.dumps(plain(results.figures), indent=1, ensure_ascii=False) + "\n", "utf-8"
        )
        (scratch / TABLES).write_text(markdown(results), "utf-8")
        drawings = {}
        for plot in results.plots:
            files = drawn(plot)
            for ending, content in files.items():
                (scratch / f"{plot.name}.{ending}").write_bytes(content)
            drawings[plot.name] = files["svg"].decode()
        (scratch / PAGE).write_text(page(results, drawings), "utf-8")
        if directory.exists():
            shutil.rmtree(directory)
        scratch.rename(directory)
    return directory / PAGE


def require_ours(directory: Path) -> None:
    """Rejects a folder that holds anything but an experiment, because writing replaces it.

    Raises:
      UserError: It does.
    """
    if not directory.exists() or (directory / FIGURES).is_file():
        return
    if not directory.is_dir() or any(directory.iterdir()):
        raise UserError(
            f"{directory} must be new, empty or an earlier experiment's, as it is replaced. "
            "Received: other content."
        )


def plain(value: Any) -> Any:
    """`value` as JSON: arrays are lists; NaN and infinity, which JSON lacks, are null."""
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value
