"""Runs of the evaluator over the small world of the calibrator's cases."""

from artifact_files import artifact
from calibrated_cases import CONFIG, channels
from tfx.types.standard_artifacts import ModelBlessing

from components.artifacts import RetrievalEvaluation
from components.retrieval_evaluator.component import RetrievalEvaluator
from components.retrieval_evaluator.executor import RetrievalEvaluatorExecutor
from pebr_tf.release.evaluation import ModelEvaluation

# So few queries say little: gates that any model passes.
EASY = CONFIG.replace_all(
    {
        "evaluation.gates.min_precision_lift": -1,
        "evaluation.gates.min_recall_lift": -1,
        "evaluation.gates.max_calibration_error": 1,
        "evaluation.gates.max_stratum_calibration_error": 1,
    }
)


def evaluate(folder, given, config):
    """Runs Do as TFX would; the evaluation as it is on disk, and the blessing."""
    config = config.replace("pipeline.releases", str(folder / "releases"))
    component = RetrievalEvaluator(**channels(given), config=config, source="abc")
    outputs = {
        "evaluation": [artifact(RetrievalEvaluation, folder / "evaluation")],
        "blessing": [artifact(ModelBlessing, folder / "blessing")],
    }
    RetrievalEvaluatorExecutor().Do(given, outputs, component.exec_properties)
    return ModelEvaluation.load(folder / "evaluation"), outputs["blessing"][0]


def held_out(world, row):
    place = {item: at for at, item in enumerate(world.ids)}
    clicks = {(q, i) for q, i, c in world.clicks["test"] if c and q == f"q{row}"}
    return [place[item] for _, item in clicks]
