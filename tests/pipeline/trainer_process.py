"""`run_fn` as one of several workers."""

import json
from pathlib import Path
from types import SimpleNamespace

from pebr_tf.release.towers import TowersDescription
from pipeline.trainer import run_fn


def work(given, index):
    run_fn(SimpleNamespace(**given))
    # The last file of an export; on every worker, TFX looks for the model now.
    description = Path(given["serving_model_dir"]) / TowersDescription.FILE
    print(json.dumps({"exported": description.exists()}))
