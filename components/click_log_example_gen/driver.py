"""Finds the span and the files before the run, because they are part of the cache key."""

from typing import Any

from tfx.components.example_gen import driver
from tfx.orchestration import data_types

from components.click_log_example_gen import inputs
from components.click_log_example_gen.settings import from_exec_properties
from pebr_tf.errors import UserError


class ClickLogExampleGenDriver(driver.Driver):
    """Adds span, version, fingerprint and the resolved patterns to the exec properties."""

    def resolve_exec_properties(
        self,
        exec_properties: dict[str, Any],
        pipeline_info: data_types.PipelineInfo,
        component_info: data_types.ComponentInfo,
    ) -> dict[str, Any]:
        """See the base class; resolves the patterns of both tables."""
        del pipeline_info, component_info
        data = from_exec_properties(exec_properties).data
        try:
            found = inputs.resolve(data, exec_properties.get(inputs.WANTED_SPAN))
        except UserError:
            # The executor raises the same error, and TFX then records a failed run.
            return {**exec_properties, **inputs.NOT_FOUND}
        return {**exec_properties, **found.to_exec_properties()}
