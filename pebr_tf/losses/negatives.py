"""Optional inputs of a loss about its negatives: ids to mask by, corrections."""

from typing import Any, NamedTuple


class Negatives(NamedTuple):
    """Information about a batch's negatives; every field is optional.

    The other items of the batch are always negatives. A mask is on when the ids that it needs are
    given: it takes candidates that are no negatives out of the comparison, in both directions, and
    never touches the positive itself.

    B is the batch. Ids are integers.

    Attributes:
      item_ids: [B] ids of the batch's items. Takes out copies of the query's own item.
      query_ids: [B] ids of the batch's queries. Takes out items that came with the same query.
      log_q: [B] log probability with which each item is sampled into a batch; it is subtracted from
        the item's logits (logQ correction).
      log_query_prior: [B] log probability of each query, for the item -> query direction.
    """

    item_ids: Any = None
    query_ids: Any = None
    log_q: Any = None
    log_query_prior: Any = None
