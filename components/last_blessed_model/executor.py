"""Chooses the model by the pointers, and copies it to where the platform wants the output."""

import hashlib
import json
from pathlib import Path

from tfx.components.example_gen.utils import FINGERPRINT_PROPERTY_NAME
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from components.artifacts import Artifacts, Properties
from components.click_log_example_gen.settings import exec_properties as reading_properties
from components.folders import published_folder
from pebr_tf import storage
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pebr_tf.release.pointers import BlessedModel, Pointers

# Exec property: the choice of the driver, or nothing where the driver found no model.
CHOSEN = "chosen"
# Platforms that copy outputs do not keep an empty folder.
NO_MODEL = "no_model.txt"


class LastBlessedModelExecutor(BaseExecutor):
    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Writes the towers, and the pointer that states which model they are.

        Raises:
          UserError: An index-only run finds no model, a pointer is not valid, or its towers are
            gone.
        """
        # Containers run no driver.
        text = exec_properties.get(CHOSEN)
        if text is None:
            text = choice(input_dict, exec_properties)
        if not text and not input_dict.get("examples"):
            raise UserError(
                "an index-only run must find a blessed model: run the whole pipeline first. "
                "Received: none."
            )
        output = artifact_utils.get_single_instance(output_dict["model"])
        with published_folder(output.uri) as folder:
            if not text:
                (folder / NO_MODEL).write_text("No earlier model.\n", encoding="utf-8")
                return
            blessed = BlessedModel.from_json(text, CHOSEN)
            (folder / BlessedModel.FILE).write_text(text, encoding="utf-8")
            pointers = Pointers(exec_properties["pointers"], exec_properties["releases"])
            towers = pointers.towers(blessed)
            copy = Path(path_utils.serving_model_dir(str(folder)))
            storage.copy_folder(towers, copy)
            if not (copy / "saved_model.pb").exists():
                raise UserError(
                    f"{towers} must hold the towers of release {blessed.model}, unless the release "
                    "is withdrawn. Received: no saved_model.pb."
                )


def choice(inputs: Artifacts, exec_properties: Properties) -> str:
    """The pointer to the model that a run takes; empty if there is none."""
    pointers = Pointers(exec_properties["pointers"], exec_properties["releases"])
    examples = inputs.get("examples")
    identity = examples and examples_identity(examples[0], exec_properties["reading"])
    blessed = pointers.newest_model(other_than=identity or None)
    return "" if blessed is None else blessed.to_json()


def reading_of(config: Config) -> str:
    """The settings that examples are read with."""
    return json.dumps(reading_properties(config), sort_keys=True)


def examples_identity(examples: Artifact, reading: str) -> str:
    """Identifies the files and the settings that examples were read with."""
    fingerprint = examples.get_string_custom_property(FINGERPRINT_PROPERTY_NAME)
    return hashlib.sha256(f"{fingerprint}\n{reading}".encode()).hexdigest()
