"""Encodes query texts with the query model, in this process."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import tensorflow as tf

from pebr_tf.errors import UserError
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, TOWER_FIELDS, EncodedQueries


class Encoder(Protocol):
    """Turns texts into `EncodedQueries`; thread-safe."""

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        """Encodes texts [B] before `deadline`, on the clock of `time.monotonic`.

        Without the law, which a search for the level gives as well, it takes half of the time.
        """
        ...


class EmbeddedEncoder:
    """A query model loaded into this process; thread-safe."""

    def __init__(self, directory: Path):
        graph = tf.Graph()
        self._session = tf.compat.v1.Session(graph=graph, config=_in_calling_thread())
        try:
            with graph.as_default():
                model = tf.compat.v1.saved_model.load(self._session, ["serve"], str(directory))
            self._towers = self._callable(model.signature_def["encode"], TOWER_FIELDS)
            self._full = self._callable(model.signature_def["serving_default"], ENCODED_FIELDS)
        except (OSError, KeyError) as error:
            raise UserError(f"{directory} must be a query model. Received: {error}.") from None

    def encode(
        self, queries: Sequence[str], deadline: float = math.inf, with_law: bool = True
    ) -> EncodedQueries:
        """Encodes texts [B]; takes milliseconds, so the deadline is ignored."""
        texts = np.array([query.encode() for query in queries], object)
        names = ENCODED_FIELDS if with_law else TOWER_FIELDS
        outputs = (self._full if with_law else self._towers)(texts)
        return EncodedQueries.of(dict(zip(names, outputs, strict=True)))

    def _callable(
        self, signature: Any, names: Sequence[str]
    ) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
        outputs = [signature.outputs[name].name for name in names]
        call: Callable[[np.ndarray], Sequence[np.ndarray]] = self._session.make_callable(
            outputs, feed_list=[signature.inputs["query"].name]
        )
        return call


def _in_calling_thread() -> tf.compat.v1.ConfigProto:
    """A session that is fast for graphs of many small operations, which only it offers.

    A query model has hundreds of small operations: passing them between threads takes longer than
    running them, and so do the graph's assertions on values that the model itself computed.
    """
    config = tf.compat.v1.ConfigProto(
        inter_op_parallelism_threads=-1, intra_op_parallelism_threads=1
    )
    rewrite = config.graph_options.rewrite_options
    rewrite.debug_stripper = type(rewrite).ON
    return config
