"""A shop of a few hundred items with titles in English and in Chinese, clicks, and its folder."""

import gzip
import itertools
import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path

import ml_metadata
from ml_metadata.proto import metadata_store_pb2

PEBR = str(Path(sys.executable).parent / "pebr")
RUN = ("run", "--config", "pebr.yaml")
COMPONENTS = [
    *("ClickLogExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator"),
    *("LastBlessedModel", "Transform", "Trainer"),
    *("IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher"),
]
# It reads and writes a pointer and is therefore never cached.
ALWAYS = "ExampleValidator"
CLOUD = {
    "cloud.project": "shop-search",
    "cloud.region": "europe-west4",
    "cloud.image": "pebr:1",
    "training.warm_start": True,
}
BRANDS = {
    **{"huawei": "华为", "xiaomi": "小米", "lenovo": "联想", "haier": "海尔"},
    **{"anta": "安踏", "midea": "美的", "tcl": "创维", "oppo": "欧珀"},
}
KINDS = {
    **{"phone": "手机", "laptop": "电脑", "fridge": "冰箱"},
    **{"shoes": "运动鞋", "kettle": "水壶", "lamp": "台灯"},
}
COLOURS = {"black": "黑色", "white": "白色", "red": "红色", "green": "绿色"}
# Of both languages; a Chinese character is a word piece.
WORDS = sorted(
    {*BRANDS, *KINDS, *COLOURS}.union(*BRANDS.values(), *KINDS.values(), *COLOURS.values())
)
CLICKS = 6_000
CONFIG = """\
data:
  click_log: data/clicks.tsv
  catalogue: data/items.jsonl.gz
  drift_limit: null
  skew_limit: null
features:
  word_ngrams: [1]
  character_ngrams: [2]
  # Far more than there are tokens.
  vocabulary_size: 100000
  oov_buckets: 10
towers: {dimension: 16, token_dimension: 16, hidden_layers: [16]}
loss: {log_q: false}
training:
  batch_size: 64
  steps: 100
  validation_interval: 50
  checkpoint_interval: 40
  shuffle_buffer: 5000
  # So that a run on the same data gives the same model, whatever was released before.
  warm_start: false
cutoff: {min_calibration_queries: 10}
evaluation:
  average_k: [5, 10, 20]
  gates:
    min_precision_lift: -1
    min_recall_lift: -1
    max_calibration_error: 1
    max_stratum_calibration_error: 1
    min_index_recall: 0
    max_empty_rate: 1
"""


@dataclass(frozen=True)
class WorldFolder:
    folder: Path

    @property
    def releases(self):
        return sorted((self.folder / "releases").glob("[0-9]*"))

    def files(self, folder):
        """The names of all files under a folder of this world."""
        root = self.folder / folder
        return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}

    def finished_artifacts(self):
        """The folder of each artifact that is finished by the metadata, and the files in it."""
        config = metadata_store_pb2.ConnectionConfig()
        config.sqlite.filename_uri = str(self.folder / "run/metadata.sqlite")
        artifacts = ml_metadata.MetadataStore(config).get_artifacts()
        live = metadata_store_pb2.Artifact.State.LIVE
        return {each.uri: self.files(each.uri) for each in artifacts if each.state == live}

    def edit_config(self, old, new):
        path = self.folder / "pebr.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


def write_world(folder):
    (folder / "data").mkdir(parents=True)
    (folder / "pebr.yaml").write_text(CONFIG, encoding="utf-8")
    items = list(_items())
    with gzip.open(folder / "data/items.jsonl.gz", "wt", encoding="utf-8") as file:
        for item_id, title, _ in items:
            row = {"item_id": item_id, "title": title}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
    lines = ["query\titem_id", *_clicks(items)]
    (folder / "data/clicks.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def add_items(folder):
    """Adds the next generation of a phone to the catalogue, which nobody has clicked on yet."""
    path = folder / "data/items.jsonl.gz"
    with gzip.open(path, "at", encoding="utf-8") as file:
        for colour in COLOURS:
            row = {"item_id": f"new-{colour}", "title": f"huawei phone {colour}"}
            file.write(json.dumps(row) + "\n")


def write_clicks(path, seed):
    """Writes another day's clicks on the same items."""
    path.parent.mkdir(parents=True)
    lines = ["query\titem_id", *_clicks(list(_items()), seed)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _items():
    """Id, title and what it can be asked for by."""
    items = []
    for number, (brand, kind, colour) in enumerate(itertools.product(BRANDS, KINDS, COLOURS)):
        items.append((f"e{number}", f"{brand} {kind} {colour}", {brand, kind, colour}))
        chinese = BRANDS[brand], KINDS[kind], COLOURS[colour]
        items.append((f"c{number}", "".join(chinese), {*chinese}))
    return items


def _clicks(items, seed=7):
    """Rows of the log; queries name a brand, a kind or both, now and then with a colour."""
    generator = random.Random(seed)
    rows = []
    for _ in range(CLICKS):
        chinese = generator.random() < 0.5
        brand, kind, colour = (generator.choice(list(words)) for words in (BRANDS, KINDS, COLOURS))
        asked = ((brand, 0.7), (kind, 0.7), (colour, 0.3))
        words = [word for word, share in asked if generator.random() < share] or [kind]
        if chinese:
            words = [{**BRANDS, **KINDS, **COLOURS}[word] for word in words]
        fitting = [item_id for item_id, _, names in items if names.issuperset(words)]
        rows.append(f"{('' if chinese else ' ').join(words)}\t{generator.choice(fitting)}")
    return rows
