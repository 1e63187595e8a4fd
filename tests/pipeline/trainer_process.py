"""TFX's Trainer as one of several workers: a file of what it is given, and the worker's index."""

import json
import sys
from pathlib import Path

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)


def main(given):
    import tensorflow as tf
    from tfx.components.trainer.executor import GenericExecutor
    from tfx.proto import trainer_pb2
    from tfx.types import standard_artifacts
    from tfx.utils import proto_utils

    from pebr_tf.release.towers import TowersDescription

    def artifact(kind, name):
        made = getattr(standard_artifacts, kind)()
        made.uri = given[name]
        return made

    examples = artifact("Examples", "examples")
    examples.split_names = '["train", "calibrate"]'
    # Converting takes longer than training.
    tf.autograph.experimental.do_not_convert(GenericExecutor().Do)(
        {"examples": [examples], "transform_graph": [artifact("TransformGraph", "transform")]},
        {"model": [artifact("Model", "model")], "model_run": [artifact("ModelRun", "logs")]},
        {
            "run_fn": "pipeline.trainer.run_fn",
            "train_args": proto_utils.proto_to_json(trainer_pb2.TrainArgs(splits=["train"])),
            "eval_args": proto_utils.proto_to_json(trainer_pb2.EvalArgs(splits=["calibrate"])),
            "custom_config": json.dumps(given["custom_config"]),
        },
    )
    # The last file of an export.
    description = Path(given["model"]) / "Format-Serving" / TowersDescription.FILE
    print(json.dumps({"exported": description.exists()}))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
