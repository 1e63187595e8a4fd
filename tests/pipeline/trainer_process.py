"""`run_fn` as one of several workers: a file of its arguments, and the worker's index."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)


def main(arguments):
    from pipeline import trainer

    arguments = SimpleNamespace(**json.loads(arguments.read_text("utf-8")))
    trainer.run_fn(arguments)
    # As TFX's executor does, on every worker.
    print(json.dumps({"exported": Path(arguments.serving_model_dir).exists()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
