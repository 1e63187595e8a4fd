"""`run_fn` as one of several workers: a file of what it is given, and the worker's index."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)


def main(given):
    import tensorflow as tf

    from pebr_tf.release.towers import TowersDescription
    from pipeline.trainer import run_fn

    # Converting takes longer than training.
    tf.autograph.experimental.do_not_convert(run_fn)(SimpleNamespace(**given))
    # The last file of an export; on every worker, TFX looks for the model now.
    description = Path(given["serving_model_dir"]) / TowersDescription.FILE
    print(json.dumps({"exported": description.exists()}))


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text("utf-8")))
