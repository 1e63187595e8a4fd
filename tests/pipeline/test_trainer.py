"""Training on the output of Transform, and the exported model."""

import collections
import gzip
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from artifact_files import example, write_examples
from preprocessing_runs import analysed, texts_of, transformed
from tfx.dsl.io.filesystem_registry import DEFAULT_FILESYSTEM_REGISTRY
from tfx.dsl.io.plugins.tensorflow_gfile import TensorflowFilesystem

from pebr_tf import storage
from pebr_tf.config import Config
from pebr_tf.data.log_size import LogSize
from pebr_tf.distributions.query_law import LawWeights
from pebr_tf.release.towers import TowersDescription
from pipeline import trainer

sys.path.append(str(Path(__file__).parents[1] / "pebr_tf" / "training"))
sys.path.append(str(Path(__file__).parents[1] / "pebr_tf" / "models"))

from bert_folders import write_folder
from worker_processes import workers

pytestmark = pytest.mark.slow
FILE = "data_tfrecord-00000-of-00001.gz"
BRANDS = ("apple", "huawei", "tea & co", "line\u2028break")
CONFIG = Config().replace_all(
    {
        "features.item_categories": ["brand"],
        "features.item_numbers": ["price"],
        "features.item_id": True,
        "features.min_token_count": 1,
        "features.oov_buckets": 3,
        "towers.dimension": 8,
        "towers.token_dimension": 8,
        "towers.hidden_layers": [8],
        "loss.log_q": False,
        "training.batch_size": 8,
        "training.steps": 3,
        "training.shuffle_buffer": 100,
    }
)
# Without AutoGraph, which takes longer than the training; the runs of tests/e2e have it.
run_fn = tf.autograph.experimental.do_not_convert(trainer.run_fn)


def rows():
    return [
        {
            "query": f"query {number % 7}",
            "item_id": f"i{number % 11}",
            "clicks": 1 + number % 3,
            "title": f"item number {number % 11} 手机",
            "brand": BRANDS[number % 4],
            "price": float(number % 11),
        }
        for number in range(60)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trainer")
    names = ("item_categories", "item_numbers", "item_id", "min_token_count", "oov_buckets")
    texts = texts_of(rows(), ("title", "brand", "price"))
    analysed(texts, folder, **{name: getattr(CONFIG.features, name) for name in names})
    LogSize(rows=60, queries=12, items=10).save(folder)
    write_examples(folder, files=1, train=rows(), texts=texts)
    return folder


def arguments(folder, out, config=CONFIG, pattern=FILE, base_model=None):
    sections = {name: getattr(config, name).to_mapping() for name in trainer.SECTIONS}
    custom = {"config": sections, "average_k": [2, 4]}
    custom |= {name: f"{out}/{name}" for name in ("checkpoints", "encoded")}
    return SimpleNamespace(
        custom_config=custom,
        transform_output=str(folder / "transform"),
        train_files=[str(folder / "Split-train" / pattern)],
        eval_files=[str(folder / "Split-texts" / "*")],
        model_run_dir=str(out / "logs"),
        serving_model_dir=str(out / "Format-Serving"),
        base_model=base_model,
    )


def run_fn_with_base_model(folder, out, config):
    """Trains as if from a base model; returns which it starts from."""
    started = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trainer, "_start_from", lambda model, *given: started.append(given[0]))
        run_fn(arguments(folder, out, config, base_model="base"))
    return started


@pytest.fixture(scope="module")
def model(folder, tmp_path_factory):
    out = tmp_path_factory.mktemp("model")
    config = CONFIG.replace("training.warm_start", True)
    assert run_fn_with_base_model(folder, out, config) == ["base"]
    return out / "Format-Serving"


def test_the_description_of_the_towers(model):
    description = json.loads((model / TowersDescription.FILE).read_text())
    law = LawWeights(**description.pop("law"))
    assert np.shape(law.linear) == (3, 2)
    # In place of auto.
    changes = {"features": {"vocabulary_size": 100_000}}
    config = {
        name: getattr(CONFIG, name).to_mapping() | changes.get(name, {})
        for name in ("features", "towers", "loss", "split", "strata")
    }
    expected = {"family": "beta", "dimension": 8, "loss": "beta_nce", "steps": 3}
    assert description == {**expected, "config": config}
    assert not list((model.parent / "checkpoints").rglob("*")), "of a finished training"


CLEAN = """
import json, sys
import tensorflow as tf
model = tf.saved_model.load(sys.argv[1])
call = model.signatures
query = call["query"](query=tf.constant(["QUERY 3", "never seen", ""]))
item = call["item"](
    title=tf.constant(["item number 3 手机", ""]), brand=tf.constant(["apple", "new"]),
    price=tf.constant([3.0, 0.0]), item_id=tf.constant(["i3", "new"]))
record = next(iter(tf.data.TFRecordDataset(sys.argv[2], "GZIP").skip(3).batch(1)))
pair = call["serialized_examples"](examples=record)
names = [module for module in sys.modules if module in ("pebr_tf", "tensorflow_transform", "tfx")]
print(json.dumps({
    "imported": names,
    "signatures": {
        name: {
            key: [value.dtype.name, value.shape.as_list()]
            for key, value in f.structured_outputs.items()
        }
        for name, f in call.items()
    },
    "query": {k: v.numpy().tolist() for k, v in query.items()},
    "item": {k: v.numpy().tolist() for k, v in item.items()},
    "pair": {k: v.numpy().tolist() for k, v in pair.items()},
}))
"""


@pytest.fixture(scope="module")
def answer(folder, model):
    command = [sys.executable, "-c", CLEAN, str(model), str(folder / f"Split-train/{FILE}")]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_signatures(answer):
    assert answer["imported"] == []
    numbers, vectors = ["float32", [None]], ["float32", [None, 8]]
    law = dict.fromkeys(("tau", "frequency", "known_share"), numbers)
    law["stratum"] = ["int64", [None]]
    assert answer["signatures"] == {
        "query": {"embedding": vectors, **law},
        "item": {"embedding": vectors},
        "serialized_examples": {"query_embedding": vectors, "item_embedding": vectors, **law},
    }


def test_the_towers_run_without_this_project(answer):
    query, item, pair = answer["query"], answer["item"], answer["pair"]
    for vectors in (query["embedding"], item["embedding"]):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    clicks = sum(row["clicks"] for row in rows() if row["query"] == "query 3")
    assert query["frequency"] == [clicks, 0.0, 0.0]
    assert query["stratum"][1:] == [2, 2]
    assert query["known_share"][0] == 1
    assert all(0.002 <= tau <= 1.0 for tau in query["tau"])
    # Row 3 is query 3 with item 3, however they come in.
    np.testing.assert_allclose(pair["query_embedding"][0], query["embedding"][0], atol=1e-6)
    assert pair["frequency"] == [clicks]


def test_other_settings_train_and_export(folder, tmp_path):
    config = CONFIG.replace_all(
        {
            "features.item_categories": [],
            "features.item_numbers": [],
            "features.item_id": False,
            "towers.kind": "transformer",
            "towers.transformer_layers": 1,
            "towers.shared_tokens": False,
            "loss.family": "info_nce",
            "training.steps": 1,
            "training.mixed_precision": True,
            "training.strategy": "mirrored",
            "training.warm_start": False,
        }
    )
    assert run_fn_with_base_model(folder, tmp_path, config) == []
    towers = tf.saved_model.load(str(tmp_path / "Format-Serving"))
    answer = towers.signatures["query"](query=tf.constant(["query 3", ""]))
    np.testing.assert_allclose(np.linalg.norm(answer["embedding"], axis=1), 1.0, atol=1e-5)
    assert answer["tau"].dtype == tf.float32


@pytest.mark.parametrize(
    ("layers", "combine", "precision"), [(0, True, True), (0, False, False), (1, True, True)]
)
def test_towers_on_a_pretrained_encoder_take_raw_text(folder, tmp_path, layers, combine, precision):
    """The same texts have the same vectors in training, where they may come from a cache."""
    write_folder(tmp_path / "bert")
    config = CONFIG.replace_all(
        {
            # The transform of these tests cuts titles alone into tokens.
            "features.item_text": ["title"] if combine else ["title", "brand"],
            "towers.kind": "bert",
            "towers.backbone": str(tmp_path / "bert"),
            "towers.max_length": 16,
            "towers.trainable_layers": layers,
            "towers.combine": combine,
            "towers.query_prefix": "query ",
            "training.mixed_precision": precision,
            "training.gradient_checkpointing": True,
        }
    )
    made = []
    with pytest.MonkeyPatch.context() as patch:
        exported = trainer.export
        patch.setattr(trainer, "export", lambda *given: made.append(given) or exported(*given))
        run_fn(arguments(folder, tmp_path, config))
    model, transform, *_, backbone = made[0]
    tables = trainer._text_tables(
        [str(folder / f"Split-texts/{FILE}")],
        transform,
        config,
        backbone,
        str(tmp_path / "encoded"),
    )
    assert (tmp_path / "encoded").exists() == (layers == 0)
    towers = tf.saved_model.load(str(tmp_path / "Format-Serving"))
    texts = tables[0].texts
    answer = towers.signatures["query"](query=texts)
    trained = model.encode_query(tables[0].features)
    np.testing.assert_allclose(
        answer["embedding"], trained.vectors, atol=2e-2 if precision else 1e-5
    )
    example = rows()[3]
    columns = ("title", "brand", "price", "item_id")
    given = {name: tf.constant([example[name]]) for name in columns}
    place = tables[1].texts.numpy().tolist().index(b"i3")
    expected = model.encode_item(tables[1].at(tf.constant([place])))
    answer = towers.signatures["item"](**given)
    np.testing.assert_allclose(answer["embedding"], expected, atol=2e-2 if precision else 1e-5)


def test_a_trial_of_both_ways_decides_on_log_q(folder, tmp_path, monkeypatch):
    """The recalls are made up; the towers that are measured are trained."""
    measured = []

    def recalls(pairs, family, average_k):
        measured.append(pairs.items)
        assert (len(pairs.items), family, average_k) == (11, "beta", [2, 4])
        assert len(pairs.rows) == 8
        assert pairs.tau.shape == (pairs.rows.max() + 1,)
        return np.array([0.4, 0.5, 0.6]) + 0.1 * (len(measured) == 1)

    def pairs(files, parse, training):
        return [next(iter(trainer.batches.training_batches(files, parse, training)))]

    monkeypatch.setattr(trainer, "served_recalls", recalls)
    monkeypatch.setattr(trainer.batches, "validation_batches", pairs)
    config = CONFIG.replace_all({"loss.log_q": "auto", "training.steps": 15})
    run_fn(arguments(folder, tmp_path, config, base_model=None))
    description = TowersDescription.load(tmp_path / "Format-Serving")
    assert description.config["loss"]["log_q"] is True
    assert not np.allclose(*measured)


def test_a_batch_has_the_features_that_the_graph_makes_of_its_rows(folder):
    transform = trainer.tft.TFTransformOutput(str(folder / "transform"))
    texts = [str(folder / f"Split-texts/{FILE}")]
    tables = trainer._text_tables(texts, transform, CONFIG, None, "")
    some = rows()[:8]
    batch = trainer._parser(*tables)(tf.constant([example(**row) for row in some]))
    direct = transformed(transform, some)
    assert batch["clicks"].numpy().tolist() == [row["clicks"] for row in some]
    clicks = collections.Counter()
    for row in rows():
        clicks[row["item_id"]] += row["clicks"]
    expected = [clicks[row["item_id"]] for row in some]
    assert batch["item_frequency"].numpy().tolist() == expected
    names = set(batch) - {"clicks", "item_frequency"}
    assert names == set(direct) - {"stratum", "known_share"}
    for name in names:
        ours, theirs = (tf.cast(each[name], tf.float64) for each in (batch, direct))
        ragged = isinstance(ours, tf.RaggedTensor)
        assert ours.to_list() == theirs.to_list() if ragged else np.array_equal(ours, theirs)


def work(given, index):
    """`run_fn` as one of several workers."""
    trainer.run_fn(SimpleNamespace(**given))
    # The last file of an export; on every worker, TFX looks for the model now.
    description = Path(given["serving_model_dir"]) / TowersDescription.FILE
    print(json.dumps({"exported": description.exists()}))


def test_two_workers_export_once_what_one_would(folder, model, tmp_path):
    config = CONFIG.replace("training.strategy", "multi_worker")
    given = vars(arguments(folder, tmp_path, config))
    with workers(work, tmp_path, given) as started:
        ended = [worker.finish() for worker in started]
    assert [each.answer() for each in ended] == [{"exported": True}] * 2
    assert ["of 3 steps, loss" in each.err for each in ended] == [True, False]
    assert [list(worker.temporary.iterdir()) for worker in started] == [[], []]
    assert not list((tmp_path / "checkpoints").iterdir())
    assert len(list((tmp_path / "logs").iterdir())) == 1
    ours, expected = (
        tf.saved_model.load(str(path)).signatures["query"](query=tf.constant(["query 3", "new"]))
        for path in (tmp_path / "Format-Serving", model)
    )
    for name in ("embedding", "tau"):
        np.testing.assert_allclose(ours[name], expected[name], rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def built(folder):
    """A model of other weights than the exported one, and its vocabularies."""
    config = CONFIG.replace("training.seed", 5)
    tf.keras.utils.set_random_seed(5)
    transform = trainer.tft.TFTransformOutput(str(folder / "transform"))
    vocabularies = trainer._vocabularies(transform, config)
    sizes = {name: len(words) for name, words in vocabularies.items()}
    texts = [str(folder / f"Split-texts/{FILE}")]
    tables = trainer._text_tables(texts, transform, config, None, "")
    files = [str(folder / f"Split-train/{FILE}")]
    data = trainer._Data(files, trainer._parser(*tables), [], tables[1], sizes)
    return trainer._untrained(data, config), vocabularies


def weights(model):
    return [variable.numpy() for variable in model.trainable_variables]


def test_without_an_earlier_model_training_starts_from_nothing(built, tmp_path, caplog):
    made, vocabularies = built
    before = weights(made)
    trainer._start_from(made, str(tmp_path), vocabularies)
    for now, then in zip(weights(made), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert "No warm start: there is no earlier model that this version reads." in caplog.text


def test_a_model_on_another_backbone_is_no_start(built, model, caplog):
    made, vocabularies = built
    before = weights(made)
    trainer._start_from(made, str(model), vocabularies, "bert")
    for now, then in zip(weights(made), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert "No warm start: the earlier model has another backbone." in caplog.text


class RemoteFilesystem(TensorflowFilesystem):
    """Files in TensorFlow's memory, which Python cannot open."""

    SUPPORTED_SCHEMES = ("ram://",)


@pytest.mark.usefixtures("memory_store")
def test_the_words_of_a_remote_base_model_are_read(built, model, monkeypatch):
    made, vocabularies = built
    DEFAULT_FILESYSTEM_REGISTRY.register(RemoteFilesystem, priority=10)
    for name in (TowersDescription.FILE, *(f"assets/{name}" for name in vocabularies)):
        storage.copy(model / name, f"ram://bucket/base/{name}")
    started = []
    monkeypatch.setattr(trainer, "warm_start", lambda *given: started.append(given))
    trainer._start_from(made, "ram://bucket/base", vocabularies)
    assert "line\u2028break" in vocabularies["values_brand"]
    assert started == [(made, "ram://bucket/base", vocabularies, vocabularies)]


def test_all_weights_of_a_base_model_are_used(built, model):
    made, vocabularies = built
    earlier = tf.saved_model.load(str(model)).towers
    trainer._start_from(made, str(model), vocabularies)
    for name, table in made.tables.tables.items():
        np.testing.assert_array_equal(table, earlier.tables.tables[name])
    np.testing.assert_array_equal(made.item_tower._last.kernel, earlier.item_tower._last.kernel)


def test_a_split_without_pairs_is_rejected(folder, tmp_path, rejection):
    (folder / "Split-train/none-0.gz").write_bytes(gzip.compress(b""))
    sentence = rejection(run_fn, arguments(folder, tmp_path, pattern="none-*"))
    assert sentence == "the train split must have a pair to train on. Received: none."
