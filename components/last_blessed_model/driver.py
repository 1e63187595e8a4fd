"""Chooses the model before the cache lookup, so that the choice is part of the cache key."""

from tfx.dsl.components.base.base_driver import BaseDriver
from tfx.orchestration.portable.data_types import ExecutionInfo
from tfx.proto.orchestration import driver_output_pb2

from components.last_blessed_model.executor import CHOSEN, choice


class LastBlessedModelDriver(BaseDriver):
    """Adds the choice to the exec properties; while it is the same, later components are cached."""

    def run(self, execution_info: ExecutionInfo) -> driver_output_pb2.DriverOutput:
        result = driver_output_pb2.DriverOutput()
        chosen = choice(execution_info.input_dict, execution_info.exec_properties)
        result.exec_properties[CHOSEN].string_value = chosen
        return result
