"""Optional inputs of a loss about its negatives: ids to mask by, corrections."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from pebr_tf.losses.shapes import Shapes


class Negatives(NamedTuple):
    """Information about a batch's negatives; every field is optional.

    The other items of the batch are always negatives. A mask is on when the ids that it needs are
    given: it takes candidates that are no negatives out of the comparison, in both directions, and
    never touches the positive itself.

    B is the batch, P the longest list of known positives. Ids are integers or strings, all of one
    kind (integers only under XLA).

    Attributes:
      item_ids: [B] ids of the batch's items. Takes out copies of the query's own item.
      query_ids: [B] ids of the batch's queries. Takes out items that came with the same query.
      known_positive_ids: [B, P] ids of items known to be relevant to each query, padded with
        anything that is no item's id, such as -1 or "". Takes those items out. Needs `item_ids`.
      log_q: [B] log probability with which each item is sampled into a batch; it is subtracted from
        the item's logits (logQ correction).
      log_query_prior: [B] log probability of each query, for the item -> query direction.
    """

    item_ids: Any = None
    query_ids: Any = None
    known_positive_ids: Any = None
    log_q: Any = None
    log_query_prior: Any = None

    def validated(self, shapes: Shapes) -> Negatives:
        """The fields as tensors, ids as int64; `shapes` has seen the batch's vectors, [B, n].

        Raises:
          ValueError: Shapes or kinds of ids disagree, or `known_positive_ids` lack `item_ids`.
        """
        if self.known_positive_ids is not None and self.item_ids is None:
            raise ValueError("known_positive_ids requires item_ids. Received: item_ids=None.")
        values = {name: _tensor(name, value) for name, value in self._asdict().items()}
        for name, value in values.items():
            if value is not None:
                shapes.require(name, value, "B P" if name == "known_positive_ids" else "B")
        return Negatives(**_comparable(values))


def _tensor(name: str, value: Any) -> tf.Tensor | None:
    if value is None:
        return None
    tensor = tf.convert_to_tensor(value)
    is_id = name.endswith("_ids")
    if is_id and not (tensor.dtype.is_integer or tensor.dtype == tf.string):
        raise ValueError(f"{name} must be integers or strings. Received: {tensor.dtype.name}.")
    if not is_id and not tensor.dtype.is_floating:
        raise ValueError(f"{name} must be floating point. Received: {tensor.dtype.name}.")
    return tensor


def _comparable(values: dict[str, Any]) -> dict[str, Any]:
    """Ids as int64, strings by a hash of 63 bits: a collision is rarer than a flipped bit."""
    dtypes = {
        name: values[name].dtype
        for name in ("item_ids", "known_positive_ids")
        if values[name] is not None
    }
    if len({dtype == tf.string for dtype in dtypes.values()}) > 1:
        received = ", ".join(f"{name} {dtype.name}" for name, dtype in dtypes.items())
        raise ValueError(
            f"Ids of items must all be integers or all be strings. Received: {received}."
        )
    return {
        name: _integer(value) if name.endswith("_ids") and value is not None else value
        for name, value in values.items()
    }


def _integer(ids: tf.Tensor) -> tf.Tensor:
    if ids.dtype == tf.string:
        return tf.strings.to_hash_bucket_fast(ids, 2**63 - 1)
    return tf.cast(ids, tf.int64)
