"""The interfaces of components, from tables of names and types."""

import json
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

from tfx.types import Artifact, Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter


def interface(
    inputs: Mapping[str, type],
    outputs: Mapping[str, type[Artifact]],
    optional: Collection[str] = (),
) -> type[ComponentSpec]:
    """The interface of a component; inputs that are not artifacts are parameters."""

    class Interface(ComponentSpec):
        PARAMETERS: ClassVar = {
            name: ExecutionParameter(type=kind, optional=name in optional)
            for name, kind in inputs.items()
            if not issubclass(kind, Artifact)
        }
        INPUTS: ClassVar = {
            name: ChannelParameter(type=kind, optional=name in optional)
            for name, kind in inputs.items()
            if issubclass(kind, Artifact)
        }
        OUTPUTS: ClassVar = {name: ChannelParameter(type=kind) for name, kind in outputs.items()}

    return Interface


def connected(spec: type[ComponentSpec], **inputs: Any) -> ComponentSpec:
    """An interface with its inputs, of which settings become JSON, and new output channels."""
    inputs = {
        name: json.dumps(value, sort_keys=True) if isinstance(value, dict) else value
        for name, value in inputs.items()
    }
    outputs = {name: Channel(type=output.type) for name, output in spec.OUTPUTS.items()}
    return spec(**inputs, **outputs)
