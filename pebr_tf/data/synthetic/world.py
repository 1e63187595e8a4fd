"""The synthetic world: a catalogue, the queries about it, and what is relevant to each."""

from dataclasses import dataclass

import numpy as np

from pebr_tf.data.synthetic.catalogue import Catalogue, make_catalogue
from pebr_tf.data.synthetic.queries import Queries, make_queries
from pebr_tf.data.synthetic.spec import SyntheticSpec

CATALOGUE_STREAM, QUERY_STREAM, CLICK_STREAM = range(3)


@dataclass(frozen=True)
class World:
    """Everything that the clicks are drawn from: the items (N) and the queries (Q) about them."""

    catalogue: Catalogue
    queries: Queries

    @property
    def breadth_correlation(self) -> float:
        """Spearman correlation of a query's popularity with its number of relevant items."""
        # Imported here because it takes a second.
        from scipy.stats import rankdata

        ranks = [rankdata(self.queries.popularity), rankdata(self.queries.relevant_counts)]
        if any(np.ptp(rank) == 0 for rank in ranks):
            return 0.0
        return float(np.corrcoef(ranks)[0, 1])


def make_world(spec: SyntheticSpec) -> World:
    """Makes the world of a spec; the number of clicks and the noise do not change it."""
    catalogue = make_catalogue(spec.items, random_stream(spec.seed, CATALOGUE_STREAM))
    queries = make_queries(catalogue, spec.queries, random_stream(spec.seed, QUERY_STREAM))
    return World(catalogue, queries)


def random_stream(seed: int, *path: int) -> np.random.Generator:
    """A generator that depends on the seed and its own path, and on no other stream."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=path)))
