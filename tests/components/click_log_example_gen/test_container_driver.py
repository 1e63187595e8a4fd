"""What the cache of Kubeflow v2 goes by: the span and the files, not the pattern alone."""

import json

import pytest

from components.click_log_example_gen import container_driver, inputs
from components.click_log_example_gen.settings import exec_properties
from pebr_tf.config import Config
from pebr_tf.errors import UserError

pytestmark = pytest.mark.slow

EXAMPLES = "title: tfx.Examples\ntype: object\n"


@pytest.fixture
def folder(tmp_path):
    for span in (7, 12):
        (tmp_path / str(span)).mkdir()
        (tmp_path / str(span) / "clicks.csv").write_text("query,item_id\na,b\n")
    (tmp_path / "items.csv").write_text("item_id,title\nb,c\n")
    return tmp_path


def config_of(folder):
    return Config().replace_all(
        {"data.click_log": f"{folder}/{{SPAN}}/clicks.csv", "data.catalogue": f"{folder}/items.csv"}
    )


def drive(folder, config, span=None):
    """What the driver leaves for the executor: its properties, and the whole output."""
    parameters = {**exec_properties(config), "source": "abc"}
    kinds = {name: {"parameterType": "STRING"} for name in parameters}
    if span is not None:
        parameters[inputs.WANTED_SPAN] = span
        kinds[inputs.WANTED_SPAN] = {"parameterType": "NUMBER_INTEGER"}
    artifacts, kind = {}, {"instanceSchema": EXAMPLES}
    for key in ("examples", "catalogue"):
        artifact = {"name": f"store/{key}", "type": kind, "uri": f"out/{key}"}
        artifacts[key] = {"artifacts": [artifact]}
    output = folder / "task" / "executor_output.json"
    outputs = {"artifacts": artifacts, "outputFile": str(output)}
    given = {"inputs": {"parameterValues": parameters}, "outputs": outputs}
    container_driver.run(json.dumps(given), json.dumps({"parameters": kinds}))
    told = json.loads(output.read_bytes())
    properties = {**parameters, **told["parameterValues"]}
    return inputs.from_exec_properties(properties, config.data), told


def test_the_latest_span_is_found(folder):
    found, told = drive(folder, config_of(folder))
    assert found == inputs.resolve(config_of(folder).data)
    assert (found.span, type(found.span)) == (12, int)
    assert found.click_log == f"{folder}/12/clicks.csv"
    for key in ("examples", "catalogue"):
        (artifact,) = told["artifacts"][key]["artifacts"]
        assert artifact["name"] == f"store/{key}"
        assert artifact["metadata"]["custom:span"] == 12
        assert artifact["metadata"]["input_fingerprint"] == found.fingerprint


def test_a_chosen_span(folder):
    with pytest.raises(UserError, match=r"data.click_log must match files of span 9\. Received: "):
        drive(folder, config_of(folder), span=9)
    assert not (folder / "task").exists()
    assert drive(folder, config_of(folder), span=7)[0].click_log == f"{folder}/7/clicks.csv"


def test_the_command_says_it_in_a_sentence():
    config = Config().replace("data.click_log", "none/{SPAN}/*")
    given = {"inputs": {"parameterValues": exec_properties(config)}}
    kinds = {"parameters": {"data": {"parameterType": "STRING"}}}
    arguments = ("--json_serialized_invocation_args", json.dumps(given))
    arguments += ("--json_serialized_inputs_spec_args", json.dumps(kinds))
    flags = container_driver._flags(["container_driver", *arguments, "--runner=DataflowRunner"])
    with pytest.raises(SystemExit) as caught:
        container_driver.main(flags)
    assert caught.value.code.startswith(
        "data.click_log must match files of a span. Received: none/{SPAN}/*: "
    )
