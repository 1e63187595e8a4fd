"""The machines of a run on Vertex AI: what their texts mean, and the names that Vertex knows."""

from google.cloud.aiplatform_v1.types import AcceleratorType

from pebr_tf.config import Config, Machine
from pebr_tf.config.cloud import ACCELERATORS


def test_the_accelerators_are_those_of_the_client_library() -> None:
    known = {kind.name for kind in AcceleratorType}
    assert set(ACCELERATORS) == {name for name in known if name.startswith("NVIDIA_")}


def test_a_text_is_a_machine() -> None:
    assert Machine.of("16 cpu, 64 GB") == Machine(16, 64)
    assert Machine.of("16 cpu, 64 GB, 2 NVIDIA_L4") == Machine(16, 64, "NVIDIA_L4", 2)


def test_every_default_is_a_machine() -> None:
    for text in Config().cloud.resources.to_mapping().values():
        assert Machine.of(text) == Machine(4, 16)
