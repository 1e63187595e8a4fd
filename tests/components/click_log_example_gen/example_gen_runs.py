"""Runs the executor over files in a folder and reads back what it left on disk."""

import gzip
import json
from pathlib import Path

import tensorflow as tf
from tfx.types import standard_artifacts

from components.artifacts import DeadLetters
from components.click_log_example_gen import settings
from components.click_log_example_gen.executor import ClickLogExampleGenExecutor
from pebr_tf.config import Config

SPLITS = ("train", "calibrate", "test")
ITEMS = 20
# Enough pairs for every split to get some.
LOG = [(f"query {n % 40}", f"i{n % ITEMS}", 1 + n % 3, 1_700_000_000 + n) for n in range(400)]
HEADER = "query,item_id,clicks,timestamp"


def csv_of(rows, header=HEADER):
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def write_log(folder, rows=LOG, name="log.csv"):
    (folder / name).write_text(csv_of(rows))


def write_catalogue(folder, count=ITEMS, name="items.csv"):
    rows = [(f"i{n}", f"title {n}", f"brand{n % 3}", f"{n}.5") for n in range(count)]
    (folder / name).write_text(csv_of(rows, "item_id,title,brand,price"))


def config_of(folder, log="log.csv", catalogue="items.csv", **changes):
    """A config whose items have a text, a category and a number."""
    return Config().replace_all(
        {
            "data.click_log": str(folder / log),
            "data.catalogue": None if catalogue is None else str(folder / catalogue),
            "features.item_categories": ["brand"],
            "features.item_numbers": ["price"],
            **{key.replace("__", "."): value for key, value in changes.items()},
        }
    )


def outputs_of(folder):
    kinds = {
        "examples": standard_artifacts.Examples,
        "samples": standard_artifacts.Examples,
        "catalogue": standard_artifacts.Examples,
        "dead_letters": DeadLetters,
    }
    outputs = {name: [kind()] for name, kind in kinds.items()}
    for name, [artifact] in outputs.items():
        artifact.uri = str(folder / "out" / name / "1")
    return outputs


def run(folder, config, beam_args=None):
    """Runs the executor as TFX does; what it left."""
    outputs = outputs_of(folder)
    context = ClickLogExampleGenExecutor.Context(beam_pipeline_args=beam_args)
    ClickLogExampleGenExecutor(context).Do({}, outputs, settings.exec_properties(config))
    return Left(outputs)


def left_behind(folder):
    out = folder / "out"
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())


class Left:
    def __init__(self, outputs):
        self.artifacts = {name: artifact for name, [artifact] in outputs.items()}
        self._letters = Path(self.artifacts["dead_letters"].uri)

    def clicks(self, split):
        return _examples(Path(self.artifacts["examples"].uri) / f"Split-{split}")

    def all_clicks(self):
        return [click for split in SPLITS for click in self.clicks(split)]

    def sample(self, split):
        return _examples(Path(self.artifacts["samples"].uri) / f"Split-{split}")

    def items(self):
        return _examples(Path(self.artifacts["catalogue"].uri) / "Split-items")

    @property
    def accounting(self):
        return json.loads((self._letters / "accounting.json").read_text())

    @property
    def letters(self):
        return letters_in(self._letters)


def letters_in(folder):
    with gzip.open(Path(folder) / "dead_letters.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def _examples(folder):
    files = sorted(map(str, folder.iterdir()))
    count = len(files)
    names = [f"data_tfrecord-{n:05d}-of-{count:05d}.gz" for n in range(count)]
    assert [Path(file).name for file in files] == names
    records = tf.data.TFRecordDataset(files, "GZIP").as_numpy_iterator()
    return [_values(tf.train.Example.FromString(record)) for record in records]


def _values(example):
    values = {}
    for name, feature in example.features.feature.items():
        [values[name]] = getattr(feature, feature.WhichOneof("kind")).value
    return values
