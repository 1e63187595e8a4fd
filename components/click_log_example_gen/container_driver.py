"""The driver as a command, which Kubeflow v2 runs before its cache check.

    python -m components.click_log_example_gen.container_driver \
        --json_serialized_invocation_args JSON [--json_serialized_inputs_spec_args JSON]

Without it the cache key would hold only the pattern of the files, and a new span would not be seen.
TFX has such a driver for its file-based ExampleGen, but not for a component with two patterns. The
result is written to the file from which the executor reads its properties.
"""

import os
import sys
from typing import Any

from absl import app
from absl.flags import argparse_flags
from google.protobuf import json_format
from kfp.pipeline_spec import pipeline_spec_pb2
from tfx.components.example_gen import driver
from tfx.dsl.io import fileio
from tfx.orchestration.kubeflow.v2.container import kubeflow_v2_entrypoint_utils as entrypoint
from tfx.types import artifact_utils

from components.click_log_example_gen import inputs
from components.click_log_example_gen.settings import from_exec_properties
from pebr_tf.errors import UserError


def run(invocation: str, inputs_spec: str) -> None:
    """Finds the span and the files, and writes them as an ExecutorOutput."""
    given = json_format.Parse(
        invocation, pipeline_spec_pb2.ExecutorInput(), ignore_unknown_fields=True
    )
    spec = json_format.Parse(inputs_spec, pipeline_spec_pb2.ComponentInputsSpec())
    properties = entrypoint.parse_execution_properties(
        given.inputs.parameter_values, given.inputs.parameters, spec
    )
    data = from_exec_properties(properties).data
    found = inputs.resolve(data, properties.get(inputs.WANTED_SPAN)).to_exec_properties()
    output = pipeline_spec_pb2.ExecutorOutput()
    for name, value in found.items():
        if isinstance(value, str):
            output.parameter_values[name].string_value = value
        elif value is not None:
            output.parameter_values[name].number_value = value
    names: dict[int, str] = {}
    artifacts = entrypoint.parse_raw_artifact_dict(given.outputs.artifacts, names)
    for key in ("examples", "catalogue"):
        artifact = artifact_utils.get_single_instance(artifacts[key])
        driver.update_output_artifact(found, artifact.mlmd_artifact)
        output.artifacts[key].artifacts.append(entrypoint.to_runtime_artifact(artifact, names))
    path = given.outputs.output_file
    fileio.makedirs(os.path.dirname(path))
    with fileio.open(path, "wb") as file:
        file.write(json_format.MessageToJson(output, sort_keys=True).encode())


def _flags(arguments: list[str]) -> Any:
    parser = argparse_flags.ArgumentParser()
    parser.add_argument("--json_serialized_invocation_args", required=True)
    parser.add_argument("--json_serialized_inputs_spec_args", required=True)
    # The arguments of Beam follow.
    return parser.parse_known_args(arguments)[0]


def main(flags: Any) -> None:
    """Runs the driver; a UserError ends it with one sentence."""
    try:
        run(flags.json_serialized_invocation_args, flags.json_serialized_inputs_spec_args)
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    app.run(main, flags_parser=_flags)
