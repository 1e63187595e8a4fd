"""Pushes the release, or logs why not."""

import contextlib
from pathlib import Path
from typing import cast

from absl import logging
from tfx.components.example_gen.utils import SPAN_PROPERTY_NAME
from tfx.components.util.model_utils import is_model_blessed
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import Artifact, artifact_utils
from tfx.utils import path_utils

from components.artifacts import Artifacts, Properties, PushedRelease
from components.folders import local_folder, published_folder
from components.last_blessed_model.executor import examples_identity, reading_of
from pebr_tf.config import Config
from pebr_tf.data.automatic import resolve
from pebr_tf.data.log_size import LogSize
from pebr_tf.release.pointers import BlessedModel, Pointers
from pebr_tf.release.release import PushResult, ReleaseSources
from pebr_tf.release.towers import QueryModelDescription
from pebr_tf.release.versions import QUERY_MODEL
from serving.push import push_anywhere


class PusherExecutor(BaseExecutor):
    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Pushes a blessed model.

        Writes a `PushResult`; custom properties `pushed`, 0 or 1, and if 1 also `version`.

        Raises:
          UserError: An artifact is missing, the query model does not belong to the index, the
            release does not load and answer, or the folder cannot be written to. The model of an
            index-only run was withdrawn, or followed by a newer one, while the run was under way.
        """
        output = artifact_utils.get_single_instance(output_dict["release"])
        if not is_model_blessed(artifact_utils.get_single_instance(input_dict["blessing"])):
            logging.warning("The model was not blessed: nothing was pushed.")
            output.set_int_custom_property(PushedRelease.PUSHED, 0)
            _save(PushResult(), output)
            return
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        model = artifact_utils.get_single_uri(input_dict["model"])
        config = Config.from_yaml(exec_properties["config"])
        pointers = Pointers(exec_properties["pointers"], exec_properties["releases"])
        earlier = BlessedModel.find(model)

        def confirm() -> None:
            if earlier is not None:
                pointers.require_newest(earlier)

        confirm()
        if earlier is None:
            identity = examples_identity(examples, reading_of(config))
            towers = pointers.keep_towers(path_utils.serving_model_path(model))

        def record(version: int) -> None:
            pointers.record(version, earlier or BlessedModel(version, identity, towers))

        with contextlib.ExitStack() as stack:
            cutoff, index, evaluation = (
                stack.enter_context(local_folder(artifact_utils.get_single_uri(input_dict[name])))
                for name in ("cutoff", "index", "evaluation")
            )
            # ExampleGen's span is a custom property, and 0 where there is none.
            span = examples.get_int_custom_property(SPAN_PROPERTY_NAME) or None
            used = _used(config, cutoff, examples)
            pushed_as = None if earlier is None else earlier.model
            sources = ReleaseSources(cutoff, index, evaluation, used, span, pushed_as)
            result = push_anywhere(pointers.releases, sources, confirm, record)
        output.set_int_custom_property(PushedRelease.VERSION, cast(int, result.version))
        output.set_int_custom_property(PushedRelease.PUSHED, 1)
        _save(result, output)


def _used(config: Config, cutoff: Path, examples: Artifact) -> Config:
    """The configuration with the values that `auto` stood for; the model states its own."""
    model = QueryModelDescription.load(cutoff / QUERY_MODEL)
    config = Config.from_mapping({**config.to_mapping(), **model.config})
    return resolve(config, LogSize.load(examples.uri))


def _save(result: PushResult, output: Artifact) -> None:
    with published_folder(output.uri) as folder:
        result.save(folder)
