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

    B is the batch, P the longest list of known positives. Ids are integers.

    Attributes:
      item_ids: [B] ids of the batch's items. Takes out copies of the query's own item.
      query_ids: [B] ids of the batch's queries. Takes out items that came with the same query.
      known_positive_ids: [B, P] ids of items known to be relevant to each query, padded with
        anything that is no item's id, such as -1. Takes those items out. Needs `item_ids`.
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
          ValueError: Shapes or dtypes are wrong, or `known_positive_ids` lack `item_ids`.
        """
        if self.known_positive_ids is not None and self.item_ids is None:
            raise ValueError("known_positive_ids requires item_ids. Received: item_ids=None.")
        values = {}
        for name, value in self._asdict().items():
            if value is None:
                continue
            tensor, is_id = tf.convert_to_tensor(value), name.endswith("_ids")
            if is_id and not tensor.dtype.is_integer:
                raise ValueError(f"{name} must be integers. Received: {tensor.dtype.name}.")
            if not is_id and not tensor.dtype.is_floating:
                raise ValueError(f"{name} must be floating point. Received: {tensor.dtype.name}.")
            shapes.require(name, tensor, "B P" if name == "known_positive_ids" else "B")
            values[name] = tf.cast(tensor, tf.int64) if is_id else tensor
        return Negatives(**values)
