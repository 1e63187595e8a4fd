"""Embeds the catalogue with Beam, assembles the index and publishes it in one step."""

import hashlib
import json

import tensorflow as tf
from absl import logging
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from components.artifacts import Artifacts, Properties
from components.example_files import split_files
from components.folders import artifact_folder, work_folder
from components.index_builder import shards
from components.index_builder.assembly import checked_vectors, gather
from components.index_builder.embed import embed_catalogue
from components.index_builder.fit import require_fit
from components.pairs import read_pairs
from components.towers import TowersModel
from pebr_tf.config import Index
from pebr_tf.errors import UserError
from pebr_tf.release.catalogue import EmbeddedCatalogue
from pebr_tf.release.payload import ID_COLUMN
from pebr_tf.retrieval import build_index
from pebr_tf.retrieval.build import TUNING_QUERIES


class IndexBuilderExecutor(BaseBeamExecutor):
    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Properties
    ) -> None:
        """Builds the index; writes `index/`, vectors.npy, ids.npy, payload.parquet and moments.npz.

        Raises:
          UserError: The catalogue is empty, repeats an id or lacks a column of the model; a vector
            is not finite or has length zero; the model lacks a signature or does not fit; the index
            does not reach the required recall.
        """
        settings = json.loads(exec_properties["settings"])
        config = Index.from_mapping(settings["index"])
        payload = [name for name in settings["payload_columns"] if name != ID_COLUMN]
        catalogue = artifact_utils.get_single_instance(input_dict["catalogue"])
        model = artifact_utils.get_single_instance(input_dict["model"])
        model_path = path_utils.serving_model_path(model.uri)
        if settings["fit"] is not None:
            require_fit(model_path, settings["fit"])
        clicks = artifact_utils.get_single_instance(input_dict["examples"])
        uri = artifact_utils.get_single_uri(output_dict["index"]).rstrip("/")

        towers = TowersModel(model_path, payload)
        item_files = split_files(catalogue, "items")
        _check_columns(towers, item_files)
        with work_folder(uri) as work:
            with self._make_beam_pipeline() as pipeline:
                embed_catalogue(pipeline, item_files, model_path, payload, work)
            names = shards.read_names(work)
            if not names:
                raise UserError(
                    f"the catalogue must have an item. Received: none in {catalogue.uri}."
                )
            items, vectors = gather(work, names)
            texts = _sampled(
                read_pairs(clicks, "calibrate").queries, TUNING_QUERIES + config.check_queries
            )
            queries = None
            if texts:
                queries = checked_vectors("query", texts, towers.embed_queries(texts).vectors)
            with artifact_folder(uri, work) as folder:
                embedded = EmbeddedCatalogue.save(folder, items, vectors)
                try:
                    build_index(
                        embedded.index,
                        vectors,
                        embedded.ids(),
                        config,
                        queries=queries,
                        background_sample=settings["background_sample"],
                        progress=lambda step: logging.info("index: %s", step),
                    )
                except ValueError as error:
                    # Ids and vectors are valid here, so this is the recall check of the index.
                    raise UserError(str(error)) from error


def _check_columns(towers: TowersModel, files: list[str]) -> None:
    """Checks one example here, because an error of a Beam worker is a page long."""
    for serialized in tf.data.TFRecordDataset(files, "GZIP").take(1):
        missing = towers.missing_columns(serialized.numpy())
        if missing:
            raise UserError(
                "the catalogue must have the columns that the model and data.payload_columns "
                f"name. Received: no {' and no '.join(missing)}."
            )


def _sampled(queries: list[str], count: int) -> list[str]:
    """At most `count` queries, those with the least hashes: a uniform sample."""
    hashes = {query: hashlib.blake2b(query.encode(), digest_size=8).digest() for query in queries}
    return sorted(queries, key=hashes.__getitem__)[:count]
