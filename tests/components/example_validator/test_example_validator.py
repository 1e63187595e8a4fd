"""ExampleValidator on real statistics: the files it writes, and the errors it stops with."""

import json

import numpy as np
import pyarrow as pa
import pytest
import tensorflow_data_validation as tfdv
from tensorflow_data_validation.statistics.stats_impl import generate_statistics_in_memory
from tensorflow_data_validation.statistics.stats_options import StatsOptions
from tensorflow_metadata.proto.v0 import anomalies_pb2
from tfx.dsl.components.common.importer import Importer
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline
from tfx.types import Channel, artifact_utils
from tfx.types.standard_artifacts import ExampleAnomalies, ExampleStatistics, Schema

from components.example_validator import ExampleValidator
from components.example_validator.executor import ExampleValidatorExecutor
from pebr_tf.config import Config
from pebr_tf.errors import UserError

pytestmark = pytest.mark.slow

SIZES = {"train": 800, "calibrate": 200, "test": 200}
MUST = "the click log must fit its schema and the limits of drift and skew. Received: "


def clicks(count, seed):
    """Columns of a click log whose distributions do not depend on the seed."""
    random = np.random.default_rng(seed)
    places = random.integers(0, 60, count)
    return {
        "query": [f"query {place}" for place in random.integers(0, 40, count)],
        "item_id": [f"item-{place}" for place in places],
        "clicks": random.geometric(0.6, count).tolist(),
        "timestamp": (1_700_000_000 + 1_000_000 * seed + random.integers(0, 1_000, count)).tolist(),
        "title": [f"标题 {place}" for place in places],
        "brand": random.choice(["acme", "basta", "corp"], count).tolist(),
        # Heavy-tailed, as prices are: the largest of train is far above the largest of test.
        "price": random.lognormal(3, 1.5, count).tolist(),
    }


def splits(seed=0):
    return {
        split: clicks(size, 10 * seed + place) for place, (split, size) in enumerate(SIZES.items())
    }


def statistics_of(columns):
    # None is an absent feature, as against an empty text.
    arrays = [
        pa.array([None if value is None else [value] for value in column])
        for column in columns.values()
    ]
    batch = pa.RecordBatch.from_arrays(arrays, list(columns))
    return generate_statistics_in_memory(batch, StatsOptions())


@pytest.fixture
def run(tmp_path):
    """A function that runs Do on the statistics of splits and returns the anomalies artifact."""
    runs = []

    def write(data, schema=None):
        folder = tmp_path / f"run{len(runs)}"
        for split, columns in data.items():
            (folder / "statistics" / f"Split-{split}").mkdir(parents=True)
            path = folder / "statistics" / f"Split-{split}" / "FeatureStats.pb"
            path.write_bytes(statistics_of(columns).SerializeToString())
        schema = schema or tfdv.infer_schema(statistics_of(data["train"]), infer_feature_shape=True)
        (folder / "schema").mkdir()
        tfdv.write_schema_text(schema, str(folder / "schema" / "schema.pbtxt"))
        runs.append(folder)
        return folder

    def validate(data, config=None, schema=None):
        folder = write(data, schema)
        statistics, schema_artifact, anomalies = ExampleStatistics(), Schema(), ExampleAnomalies()
        statistics.split_names = artifact_utils.encode_split_names(list(data))
        statistics.span = 3
        statistics.uri, schema_artifact.uri = f"{folder}/statistics", f"{folder}/schema"
        anomalies.uri = f"{folder}/anomalies"
        given = {"statistics": [statistics], "schema": [schema_artifact]}
        config = (config or Config()).replace("pipeline.root", str(tmp_path / "root"))
        settings = component(config).exec_properties
        ExampleValidatorExecutor().Do(given, {"anomalies": [anomalies]}, settings)
        return anomalies

    validate.write, validate.folder = write, lambda: runs[-1]
    return validate


def component(config):
    channels = {"statistics": Channel(type=ExampleStatistics), "schema": Channel(type=Schema)}
    return ExampleValidator(config, **channels)


def rejection(run, *arguments, **named):
    """The anomalies in the error; the file that it names must exist."""
    with pytest.raises(UserError) as raised:
        run(*arguments, **named)
    path = run.folder() / "anomalies.json"
    text, end = str(raised.value), f". They are also in {path}."
    assert text.startswith(MUST)
    assert text.endswith(end)
    report = json.loads(path.read_text())
    assert report["accepted"] is False
    assert report["anomalies"]
    return text[len(MUST) : -len(end)]


def test_good_data_passes_on_the_first_run_and_on_the_next(run, caplog):
    first = run(splits(0))
    assert caplog.messages == ["Drift is not checked: no earlier run was accepted."]
    assert artifact_utils.decode_split_names(first.split_names) == list(SIZES)
    assert first.span == 3
    assert first.get_json_value_custom_property("blessed") == dict.fromkeys(SIZES, 1)
    for split in SIZES:
        diff = anomalies_pb2.Anomalies.FromString(
            (run.folder() / "anomalies" / f"Split-{split}" / "SchemaDiff.pb").read_bytes()
        )
        assert not diff.anomaly_info
    report = run.folder() / "anomalies" / "anomalies.json"
    assert json.loads(report.read_text()) == {
        "accepted": True,
        "compared_with_last_accepted_run": False,
        "anomalies": [],
    }
    assert not (run.folder() / "anomalies.json").exists()
    run(splits(1))
    report = run.folder() / "anomalies" / "anomalies.json"
    assert json.loads(report.read_text())["compared_with_last_accepted_run"] is True


def test_a_value_that_train_lacks_is_no_anomaly_of_an_inferred_schema(run):
    data = splits()
    data["test"]["brand"][0] = data["test"]["query"][0] = "new"
    assert tfdv.infer_schema(statistics_of(data["train"])).string_domain
    run(data)


def test_a_reviewed_schema_keeps_its_values(run):
    data = splits()
    data["test"]["brand"][:20] = ["new"] * 20
    reviewed = tfdv.infer_schema(statistics_of(data["train"]))
    tfdv.get_feature(reviewed, "query").domain = ""
    tfdv.get_feature(reviewed, "query").ClearField("domain")
    text = rejection(run, data, schema=reviewed, config=Config().replace("data.schema", "x.pbtxt"))
    assert text == (
        "column brand in split test: examples contain values missing from the schema: new (~10%)"
    )


def test_missing_columns_missing_values_and_another_type(run):
    data = splits()
    del data["calibrate"]["brand"]
    data["calibrate"]["price"] = [str(price) for price in data["calibrate"]["price"]]
    data["test"]["brand"][0] = None
    data["test"]["title"] = [7] * SIZES["test"]
    assert rejection(run, data) == (
        "column brand in split calibrate: column is completely missing; "
        "column price in split calibrate: expected data of type: FLOAT but got STRING; "
        "column brand in split test: the feature has a shape, but it's not always present (if the "
        "feature is nested, then it should always be present at each nested level) or its value "
        "lengths vary; column brand in split test: the feature was present in fewer examples than "
        "expected: minimum fraction = 1.000000, actual = 0.995000; "
        "column title in split test: expected data of type: BYTES but got INT"
    )


def test_an_empty_split(run):
    with pytest.raises(UserError, match="split test: no examples"):
        run({**splits(), "test": {name: [] for name in splits()["test"]}})


def test_drift_since_the_last_accepted_run(run):
    run(splits(0))
    data = splits(1)
    for columns in data.values():
        columns["brand"] = ["acme"] * len(columns["brand"])
        columns["price"] = [price * 1_000 for price in columns["price"]]
    before = clicks(SIZES["train"], 0)["brand"].count("acme") / SIZES["train"]
    text = rejection(run, data)
    brand, price = text.split("; ")
    assert brand == (
        f"column brand in split train: drift of {1 - before:.3g} above 0.3 (largest difference of "
        "a value's share since the last accepted run, most at 'acme')"
    )
    assert price.startswith("column price in split train: drift of 0.9")
    assert price.endswith(" above 0.3 (Jensen-Shannon divergence since the last accepted run)")
    run(data, config=Config().replace("data.drift_limit", None))


def test_skew_between_train_and_test(run, caplog):
    data = splits()
    # A frequent query is in one of the held-out splits only.
    data["test"]["query"][:100] = ["red"] * 100
    by_time = Config().replace("split.by", "time")
    run(data, config=by_time)
    data["test"]["brand"][:100] = ["夏天 连衣裙"] * 100
    found = (
        "column brand in split test: skew of 0.5 above 0.3 (largest difference of a value's share "
        "to train, most at '夏天 连衣裙')"
    )
    assert rejection(run, data, config=by_time) == found
    run(data, config=by_time.replace("data.skew_limit", 0.51))
    run(data, config=by_time.replace("data.skew_limit", None))
    assert not caplog.messages[1:]
    # One query with most of the clicks is in one split only, with all its items.
    run(data)
    assert caplog.messages[-1] == found
    # Few examples are not compared.
    data["test"] = {name: column[-3:] for name, column in splits()["test"].items()}
    run(data)


def test_a_reviewed_comparator_wins(run):
    data = splits()
    data["test"]["query"][:100] = ["one"] * 100
    reviewed = tfdv.infer_schema(statistics_of(data["train"]))
    del reviewed.string_domain[:]
    for feature in reviewed.feature:
        feature.ClearField("domain")
    query = tfdv.get_feature(reviewed, "query")
    query.skew_comparator.infinity_norm.threshold = 0.6
    config = Config().replace("data.schema", "reviewed.pbtxt")
    run(data, schema=reviewed, config=config)
    query.skew_comparator.infinity_norm.threshold = 0.4
    text = rejection(run, data, schema=reviewed, config=config.replace("data.skew_limit", None))
    assert text.startswith("column query in split test: skew of 0.5 above 0.4 ")


def test_a_column_that_the_last_run_lacked_has_not_drifted(run):
    old = splits(0)
    for columns in old.values():
        del columns["brand"]
        columns["price"] = [str(price) for price in columns["price"]]
    run(old)
    run(splits(1))
    assert json.loads((run.folder() / "anomalies/anomalies.json").read_text())["accepted"]


def test_a_rejected_run_is_rejected_again(run, tmp_path):
    good, bad = splits(0), splits(1)
    for columns in bad.values():
        columns["brand"] = ["acme"] * len(columns["brand"])
    folders = {"good": run.write(good), "bad": run.write(bad)}

    def pipeline(name):
        statistics = Importer(
            source_uri=f"{folders[name]}/statistics",
            artifact_type=ExampleStatistics,
            properties={"split_names": artifact_utils.encode_split_names(list(SIZES))},
        ).with_id("StatisticsGen")
        schema = Importer(source_uri=f"{folders[name]}/schema", artifact_type=Schema).with_id(
            "SchemaGen"
        )
        validator = ExampleValidator(
            Config().replace("pipeline.root", str(tmp_path)),
            statistics=statistics.outputs["result"],
            schema=schema.outputs["result"],
        )
        LocalDagRunner().run(
            Pipeline(
                "validation",
                str(tmp_path / "root"),
                components=[statistics, schema, validator],
                enable_cache=False,
                metadata_connection_config=metadata.sqlite_metadata_connection_config(
                    str(tmp_path / "metadata.db")
                ),
            )
        )

    def reports(pattern):
        paths = (tmp_path / "root" / "ExampleValidator" / "anomalies").glob(pattern)
        return [json.loads(path.read_text()) for path in sorted(paths)]

    pipeline("good")
    assert [r["compared_with_last_accepted_run"] for r in reports("*/anomalies.json")] == [False]
    for attempt in (1, 2):
        with pytest.raises(UserError, match=r"column brand in split train: drift of 0\.6"):
            pipeline("bad")
        assert [report["accepted"] for report in reports("*.json")] == [False] * attempt
    assert len(reports("*/anomalies.json")) == 1
    pipeline("good")
    assert len(reports("*/anomalies.json")) == 2
