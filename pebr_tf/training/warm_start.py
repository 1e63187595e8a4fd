"""Weights of an earlier model as the start of the next, also when the vocabularies have changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tensorflow as tf

_VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


@dataclass(frozen=True)
class WarmStart:
    """What an earlier model gave.

    Attributes:
      copied: Variables that were taken over, tables included.
      fresh: Names of those that start anew, because the earlier model lacks them or has another
        shape.
      known_words: Words of all vocabularies that the earlier model had a vector for.
      words: Words of all vocabularies.
    """

    copied: int
    fresh: tuple[str, ...]
    known_words: int
    words: int


def warm_start(
    model: tf.keras.Model,
    earlier: Path | str,
    vocabularies: Mapping[str, Sequence[str]],
    earlier_vocabularies: Mapping[str, Sequence[str]],
) -> WarmStart:
    """Copies the weights of an earlier model where they fit; rows of tables go by their words.

    Args:
      model: To be filled, built.
      earlier: SavedModel folder of the earlier one.
      vocabularies: Words of each vocabulary of `model`, in order.
      earlier_vocabularies: The same of the earlier model.
    """
    reader = tf.train.load_checkpoint(f"{earlier}/variables/variables")
    # What the model hangs on there differs with the signatures around it; its own paths do not.
    shapes = reader.get_variable_to_shape_map()
    copied, fresh, known, words = 0, [], 0, 0
    for path, variable in _variables(model).items():
        key = next((name for name in sorted(shapes) if name.endswith(f"/{path}{_VALUE}")), None)
        shape = list(variable.shape)
        vocabulary = path.rsplit("/", 1)[-1]
        if key is None or shapes[key][1:] != shape[1:]:
            fresh.append(path)
        elif "tables/" in path and vocabulary in vocabularies:
            new = vocabularies[vocabulary]
            places, earlier_places = _same_words(earlier_vocabularies.get(vocabulary, ()), new)
            table = variable.numpy()
            table[places] = reader.get_tensor(key)[earlier_places]
            variable.assign(table)
            copied, known, words = copied + 1, known + len(places), words + len(new)
        elif shapes[key] == shape:
            variable.assign(reader.get_tensor(key))
            copied += 1
        else:
            fresh.append(path)
    return WarmStart(copied, tuple(fresh), known, words)


def _variables(model: tf.keras.Model) -> dict[str, tf.Variable]:
    """Trained variables by their path in a checkpoint of `model`."""
    graph = tf.train.Checkpoint(model=model)
    trained = {variable.ref() for variable in model.trainable_variables}
    paths: dict[str, tf.Variable] = {}
    _walk(graph.model, "", trained, paths, set())
    return paths


def _walk(node: object, path: str, trained: set, paths: dict, seen: set) -> None:
    if isinstance(node, tf.Variable):
        if node.ref() in trained:
            trained.discard(node.ref())
            paths[path] = node
        return
    if id(node) in seen:
        return
    seen.add(id(node))
    for name, child in node._trackable_children().items():  # type: ignore[attr-defined]
        _walk(child, f"{path}/{name}" if path else name, trained, paths, seen)


def _same_words(old: Sequence[str], new: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Places in `new` and in `old` of the words that both have."""
    place = {word: index for index, word in enumerate(old)}
    pairs = [(index, place[word]) for index, word in enumerate(new) if word in place]
    array = np.array(pairs, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]
