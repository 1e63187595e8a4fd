"""Starts a model from the weights of an earlier one, also when the vocabularies have changed."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import trackable_object_graph_pb2

# TensorFlow's key for the object graph of a checkpoint.
_OBJECT_GRAPH = "_CHECKPOINTABLE_OBJECT_GRAPH"
# The attributes that identify the model among the saved objects.
_TOWERS = {"query_tower", "item_tower"}


def warm_start(
    model: tf.keras.Model,
    earlier: Path | str,
    vocabularies: Mapping[str, Sequence[str]],
    earlier_vocabularies: Mapping[str, Sequence[str]],
) -> None:
    """Copies the weights of an earlier model where they fit; rows of tables are matched by word.

    `model` is built, `earlier` is the folder of a SavedModel. The vocabularies have the words of
    each table in order.
    """
    reader = tf.train.load_checkpoint(f"{earlier}/variables/variables")
    keys = _Keys(reader)
    shapes = reader.get_variable_to_shape_map()
    for path, variable in _variables(model).items():
        key, shape, vocabulary = keys.of(path), list(variable.shape), path[-1]
        if key is None or shapes[key][1:] != shape[1:]:
            continue
        if path[-2:-1] == ("tables",) and vocabulary in vocabularies:
            old, new = earlier_vocabularies.get(vocabulary, ()), vocabularies[vocabulary]
            variable.assign(_table(variable.numpy(), reader.get_tensor(key), new, old))
        elif shapes[key] == shape:
            variable.assign(reader.get_tensor(key))


def _table(
    table: np.ndarray, earlier: np.ndarray, new: Sequence[str], old: Sequence[str]
) -> np.ndarray:
    """`table` with the earlier rows of its words.

    After the words come the buckets of rare words, whose order depends on their number only.
    """
    rows, earlier_rows = _same_words(old, new)
    table[rows] = earlier[earlier_rows]
    if old and len(table) - len(new) == len(earlier) - len(old):
        table[len(new) :] = earlier[len(old) :]
    return table


class _Keys:
    """Finds the checkpoint keys of an earlier model's variables by their attribute paths.

    The keys themselves depend on the objects around the model, and on the order in which a variable
    of two layers was found.
    """

    def __init__(self, reader: tf.train.CheckpointReader):
        graph = trackable_object_graph_pb2.TrackableObjectGraph()
        graph.ParseFromString(reader.get_tensor(_OBJECT_GRAPH))
        self._nodes = graph.nodes
        self._children = [{c.local_name: c.node_id for c in node.children} for node in graph.nodes]
        towers = (node for node, names in enumerate(self._children) if names.keys() >= _TOWERS)
        self._model = next(towers, None)

    def of(self, path: tuple[str, ...]) -> str | None:
        """The key of the variable at the end of a path of attributes; None if there is none."""
        node = self._model
        for name in path:
            node = None if node is None else self._children[node].get(name)
        if node is None or not self._nodes[node].attributes:
            return None
        key: str = self._nodes[node].attributes[0].checkpoint_key
        return key


def _variables(model: tf.keras.Model) -> dict[tuple[str, ...], tf.Variable]:
    """Trained variables, each by its shortest path of attributes from the model."""
    trained = {variable.ref() for variable in model.trainable_variables}
    paths: dict[tuple[str, ...], tf.Variable] = {}
    seen: set[int] = set()
    queue: deque[tuple[tuple[str, ...], Any]] = deque([((), model)])
    while queue:
        path, node = queue.popleft()
        if isinstance(node, tf.Variable) and node.ref() in trained:
            trained.discard(node.ref())
            paths[path] = node
        elif not isinstance(node, tf.Variable) and id(node) not in seen:
            seen.add(id(node))
            children = node._trackable_children().items()
            # Keras also numbers the layers, in an order that the next version may change.
            queue += [((*path, k), child) for k, child in children if not k.startswith("layer")]
    return paths


def _same_words(old: Sequence[str], new: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Indices in `new` and in `old` of the words that both have."""
    index_of = {word: index for index, word in enumerate(old)}
    pairs = [(index, index_of[word]) for index, word in enumerate(new) if word in index_of]
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]
