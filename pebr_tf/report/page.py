"""The report of an evaluation as one HTML file that needs nothing else."""

import re
from pathlib import Path
from typing import Any

import jinja2

from pebr_tf.files import replacing_file
from pebr_tf.metrics.results import GROUPS
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import ModelEvaluation, default_result, named_policy
from pebr_tf.report import charts, formats, tables
from pebr_tf.report.verdict import next_steps, outcome, served

# Characters that HTML forbids even as a character reference, and halves of a surrogate pair.
_UNPRINTABLE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)


def write_report(evaluation: ModelEvaluation, path: Path) -> None:
    """Writes the report as an HTML file, whole or not at all."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        finalize=printable,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    page = environment.get_template("report.html").render(
        evaluation=evaluation,
        outcome=outcome(evaluation),
        served=served(evaluation),
        next_steps=next_steps(evaluation),
        default=default_result(evaluation.policies),
        top_k=named_policy(evaluation.policies, "top_k"),
        overall=evaluation.default_knob.groups["overall"],
        worst=_worst_stratum(evaluation),
        groups=GROUPS,
        strata=STRATA,
        charts=charts,
        formats=formats,
        tables=tables,
    )
    with replacing_file(Path(path)) as temporary:
        temporary.write_text(page.strip() + "\n", encoding="utf-8")


def _worst_stratum(evaluation: ModelEvaluation) -> str | None:
    error = evaluation.calibration.error
    return max(
        (name for name in STRATA if name in error), key=lambda name: error[name], default=None
    )


def printable(value: Any) -> Any:
    """Returns a text without the characters that HTML forbids; other values as they are."""
    return _UNPRINTABLE.sub("�", value) if type(value) is str else value
