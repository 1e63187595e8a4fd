"""The artifact types of this project's components, besides those of TFX.

TYPE_NAME is an import path, as Kubeflow v2 requires: `components.RetrievalIndex`. Artifacts keep
their data in files or in custom properties, never in typed ones.
"""

from typing import Any

from tfx.types.artifact import Artifact

# What an executor receives.
Artifacts = dict[str, list[Artifact]]
Properties = dict[str, Any]


class DeadLetters(Artifact):
    """Rows that ingestion rejected, with file, row number and reason, and the row accounting."""

    TYPE_NAME = "components.DeadLetters"


class RetrievalIndex(Artifact):
    """The embedded catalogue: search index, payload, item mean and covariance."""

    TYPE_NAME = "components.RetrievalIndex"


class CutoffModel(Artifact):
    """The query model with its law, and the calibrated knobs."""

    TYPE_NAME = "components.CutoffModel"


class RetrievalEvaluation(Artifact):
    """The evaluation and its report."""

    TYPE_NAME = "components.RetrievalEvaluation"


class PushedRelease(Artifact):
    """Version and path of a pushed release; see `pebr_tf.release.release.PushResult`."""

    TYPE_NAME = "components.PushedRelease"
    # Custom properties: whether the model was pushed, 0 or 1, and the version if it was.
    PUSHED = "pushed"
    VERSION = "version"


NAMES = ("CutoffModel", "DeadLetters", "PushedRelease", "RetrievalEvaluation", "RetrievalIndex")
