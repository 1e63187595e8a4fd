"""The DAG: its nodes, `until`, and the components that each setting invalidates."""

import pytest
from tfx.dsl.compiler.compiler import Compiler
from tfx.proto.orchestration import executable_spec_pb2, pipeline_pb2

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline import pipeline as module
from pipeline.pipeline import WHOLE, Options, create_pipeline

NODES = [
    *("ClickLogExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator"),
    *("LastBlessedModel", "Transform", "Trainer"),
    *("IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator", "Pusher"),
]
# The release holds the whole configuration.
LAST = "Pusher"
CHANGES = [
    ("data.click_log", "other/*", {"ClickLogExampleGen"}),
    ("data.reject_limit", 0.5, {"ClickLogExampleGen"}),
    ("data.statistics_rows", 500, {"ClickLogExampleGen"}),
    ("data.payload_columns", ("title", "brand"), {"ClickLogExampleGen", "IndexBuilder"}),
    ("data.drift_limit", 0.1, {"ExampleValidator"}),
    ("data.skew_limit", None, {"ExampleValidator"}),
    ("split.seed", 1, {"ClickLogExampleGen", "Trainer", "RetrievalEvaluator"}),
    ("features.item_categories", ("brand",), {"ClickLogExampleGen", "Transform", "Trainer"}),
    ("features.max_tokens", 8, {"ClickLogExampleGen", "Transform", "Trainer"}),
    ("strata.head", 0.5000001, {"Transform", "Trainer"}),
    ("towers.dimension", 32, {"Trainer"}),
    ("loss.delta_beta", 0.5, {"Trainer"}),
    ("training.steps", 7, {"Trainer"}),
    ("index.leaves", 10, {"IndexBuilder"}),
    ("cutoff.background_sample", 100, {"IndexBuilder", "CutoffCalibrator", "RetrievalEvaluator"}),
    ("cutoff.level_temperature", 0.5, {"CutoffCalibrator", "RetrievalEvaluator"}),
    ("evaluation.average_k", (5, 10), {"Trainer", "CutoffCalibrator", "RetrievalEvaluator"}),
    ("evaluation.gates.max_empty_rate", 0.5, {"RetrievalEvaluator"}),
    ("serving.http_port", 9000, set()),
    ("cloud.retries", 5, set()),
]


pytestmark = [
    pytest.mark.usefixtures("same_code"),
    pytest.mark.filterwarnings("error:Node .* depends on the output of node"),
]


def compiled(config, until=None, options=WHOLE):
    return Compiler().compile(create_pipeline(config, until, options=options))


def properties(config, **options):
    return {
        node.pipeline_node.node_info.id: str(node.pipeline_node.parameters)
        for node in compiled(config, **options).nodes
    }


def upstream(config, **options):
    """The nodes that each node depends on, in the order of the pipeline."""
    nodes = [node.pipeline_node for node in compiled(config, **options).nodes]
    return {node.node_info.id: set(node.upstream_nodes) for node in nodes}


def followers(of_nodes):
    return {name for name, nodes in of_nodes.items() if "LastBlessedModel" in nodes}


@pytest.fixture(scope="module")
def unchanged():
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(module, "source_digest", lambda name: name)
        return properties(Config())


def test_every_node_comes_after_its_inputs():
    before = upstream(Config())
    assert sorted(before) == sorted(NODES)
    seen = set()
    for name, nodes in before.items():
        assert nodes <= seen
        seen.add(name)


def test_until_keeps_the_dependencies_of_the_last_component():
    first = {"ClickLogExampleGen", "StatisticsGen", "SchemaGen"}
    validated = {*first, "ExampleValidator"}
    kept = {
        "ClickLogExampleGen": {"ClickLogExampleGen"},
        "StatisticsGen": {"ClickLogExampleGen", "StatisticsGen"},
        "SchemaGen": first,
        "Transform": {*validated, "Transform"},
    }
    for number, until in enumerate(NODES):
        expected = kept.get(until, set(NODES[: number + 1]))
        assert {node.id for node in create_pipeline(Config(), until).components} == expected
    # TFX compiles it although later nodes depend on these.
    assert set(upstream(Config(), until="Transform")) == kept["Transform"]


def test_the_last_blessed_model_is_warm_start_and_baseline():
    before = upstream(Config())
    assert followers(before) == {"Trainer", "RetrievalEvaluator"}
    # Rejected data never reaches training.
    assert "ExampleValidator" in before["Transform"]
    before = upstream(Config().replace("training.warm_start", False))
    assert followers(before) == {"RetrievalEvaluator"}


def test_index_only_trains_nothing():
    before = upstream(Config(), options=Options(index_only=True))
    assert set(before) == set(NODES) - {"Transform", "Trainer"}
    assert followers(before) == {"IndexBuilder", *NODES[-3:]}
    # Rejected data never reaches the index, and the model may have been trained on the same clicks.
    assert before["LastBlessedModel"] == {"ExampleValidator"}


def test_index_only_checks_that_the_model_fits(unchanged):
    def builder(config, index_only):
        return properties(config, options=Options(index_only=index_only))["IndexBuilder"]

    other = Config().replace("towers.dimension", 32)
    assert builder(other, False) == builder(Config(), False) == unchanged["IndexBuilder"]
    assert builder(other, True) != builder(Config(), True)


def test_until_names_the_choices(rejection):
    choices = f"--until must be one of {', '.join(NODES)}. Received: transform."
    assert rejection(create_pipeline, Config(), "transform") == choices


@pytest.mark.parametrize(("key", "value", "changed"), CHANGES, ids=[row[0] for row in CHANGES])
def test_a_setting_invalidates_the_components_that_read_it(unchanged, key, value, changed):
    after = properties(Config().replace(key, value))
    # Whether a model was trained on the same examples depends on how they are read.
    changed = {*changed, LAST, *({"LastBlessedModel"} if "ClickLogExampleGen" in changed else ())}
    assert {name for name in after if after[name] != unchanged[name]} == changed


@pytest.mark.parametrize(
    ("source", "component"),
    [
        ("components.click_log_example_gen.executor", "ClickLogExampleGen"),
        ("components.example_validator.executor", "ExampleValidator"),
        ("pipeline.preprocessing", "Transform"),
        ("pipeline.trainer", "Trainer"),
        ("components.index_builder.executor", "IndexBuilder"),
        ("components.cutoff_calibrator.executor", "CutoffCalibrator"),
        ("components.retrieval_evaluator.executor", "RetrievalEvaluator"),
        ("components.pusher.executor", "Pusher"),
    ],
)
def test_an_edit_of_code_invalidates_its_component(unchanged, monkeypatch, source, component):
    monkeypatch.setattr(module, "source_digest", lambda name: "edited" if name == source else name)
    after = properties(Config())
    assert [name for name in after if after[name] != unchanged[name]] == [component]


def test_beam_arguments_reach_every_beam_component():
    arguments = ("--runner=DataflowRunner", "--project=shop", "--region=europe-west1")
    pipeline = compiled(Config().replace("pipeline.beam_args", arguments))
    deployment = pipeline_pb2.IntermediateDeploymentConfig()
    pipeline.deployment_config.Unpack(deployment)
    with_beam = {name: _beam_arguments(spec) for name, spec in deployment.executor_specs.items()}
    with_beam = {name: found for name, found in with_beam.items() if found is not None}
    assert set(with_beam) == {"ClickLogExampleGen", "StatisticsGen", "Transform", "IndexBuilder"}
    quiet = "--experiments=disable_logging_submission_environment"
    assert set(with_beam.values()) == {(*arguments, quiet)}


def _beam_arguments(spec):
    beam = executable_spec_pb2.BeamExecutableSpec()
    if not spec.Unpack(beam):
        return None
    return tuple(each.value.string_value for each in beam.beam_pipeline_args_placeholders)


def test_an_edited_schema_is_imported_again(tmp_path):
    schema = tmp_path / "schema.pbtxt"
    schema.write_text('feature { name: "query" type: BYTES }\n')
    config = Config().replace("data.schema", str(schema))
    before = properties(config)
    assert "SchemaGen" not in before
    schema.write_text('feature { name: "query" type: INT }\n')
    after = properties(config)
    assert {name for name in after if after[name] != before[name]} == {"ImportSchemaGen"}


def test_a_bad_schema_is_a_user_error(tmp_path):
    config = Config().replace("data.schema", str(tmp_path / "none.pbtxt"))
    with pytest.raises(UserError, match=r"data.schema must be an existing file. Received: .*none"):
        create_pipeline(config)
    (tmp_path / "none.pbtxt").write_text("features: 3\n")
    with pytest.raises(UserError, match=r"none.pbtxt must be a schema, pbtxt. Received: 1:1"):
        create_pipeline(config)
