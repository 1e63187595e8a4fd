"""What experiments ask of towers, against queries and items compared one by one."""

import numpy as np
import pytest
from experiment_runs import clicked_in


def by_hand(towers, rows, relevant, depth):
    """[Q, M] best cosines, ranks of the relevant items and their numbers, a query at a time."""
    cosines, ranks, totals = [], set(), []
    for row, query in enumerate(rows):
        scores = towers.items @ towers.queries.vectors[query]
        order = np.argsort(-scores)
        cosines.append(scores[order[:depth]])
        place = {int(item): rank for rank, item in enumerate(order)}
        ranks |= {(row, min(place[item], depth)) for item in relevant[query]}
        totals.append(len(relevant[query]))
    return np.array(cosines), ranks, totals


@pytest.mark.parametrize(("split", "depth"), [("calibrate", 7), ("test", 40), ("test", 1_000)])
def test_candidates_and_their_truth_by_hand(towers, split, depth):
    clicked = clicked_in(towers, split)
    rows = list(clicked)
    assert towers.rows(split).tolist() == rows
    found = towers.candidates(split, (1.0,), depth)
    cosines, ranks, totals = by_hand(towers, rows, clicked, min(depth, 40))
    np.testing.assert_allclose(found.cosines, cosines, atol=1e-6)
    ours = zip(found.relevant.rows.tolist(), found.relevant.ranks.tolist(), strict=True)
    assert set(ours) == ranks
    assert found.totals.tolist() == totals
    np.testing.assert_array_equal(found.tau, towers.queries.tau[rows])
    np.testing.assert_array_equal(found.queries.strata, towers.corpus.strata[rows])
    assert found.corpus_size == 40
    assert len(found.known.rows) == 0


def test_known_pairs_are_those_of_the_training_split(towers):
    clicked, trained = clicked_in(towers, "test"), clicked_in(towers, "train")
    rows = list(clicked)
    found = towers.candidates("test", (1.0,), known=True)
    known = {query: trained.get(query, set()) for query in rows}
    _, ranks, _ = by_hand(towers, rows, known, found.depth)
    ours = zip(found.known.rows.tolist(), found.known.ranks.tolist(), strict=True)
    assert set(ours) == ranks
    # Pairs are split as pairs, so none that is held out is known.
    assert not found.seen.any()
    assert not any(clicked[query] & known[query] for query in rows)
