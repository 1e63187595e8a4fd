"""What our components hand to each other, beside TFX's own artifact types.

TYPE_NAME is an import path, as Kubeflow v2 requires: `components.RetrievalIndex`. What there is to
know of an artifact stands in its files or in custom properties, never in typed ones.
"""

from tfx.types.artifact import Artifact


class DeadLetters(Artifact):
    """Rows that ingestion refused, with file, row number and reason, and the row accounting."""

    TYPE_NAME = "components.DeadLetters"


class RetrievalIndex(Artifact):
    """The embedded catalogue: search index, payload, item mean and covariance."""

    TYPE_NAME = "components.RetrievalIndex"


class CutoffModel(Artifact):
    """The query model with its level head and calibrated knobs, and cutoff.json."""

    TYPE_NAME = "components.CutoffModel"


class RetrievalEvaluation(Artifact):
    """evaluation.json and report.html."""

    TYPE_NAME = "components.RetrievalEvaluation"


class Release(Artifact):
    """A pushed release."""

    TYPE_NAME = "components.Release"


NAMES = ("CutoffModel", "DeadLetters", "Release", "RetrievalEvaluation", "RetrievalIndex")
