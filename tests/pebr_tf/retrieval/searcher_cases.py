"""Corpora and requests for searchers that must answer exactly as another one does."""

import re
import threading
from concurrent.futures import ThreadPoolExecutor

import hypothesis.strategies as st
import numpy as np
import pytest

from pebr_tf.retrieval.exact import ExactSearcher

# Cosines that floats hold exactly, in multiples of 1/4, so that scores tie with each other and
# with thresholds; and one direction each for items and queries whose cosines round, but tie with
# no threshold: a prediction is made of float32 products and may fall to either side of a tie.
DIRECTIONS = [
    [1, 0, 0, 0], [0, 1, 0, 0], [-1, 0, 0, 0], [1, 1, 1, 1], [1, -1, 1, 1], [-1, -1, 1, -1],
]  # fmt: skip
ITEM_DIRECTIONS = np.array([*DIRECTIONS, [3, 1, 2, 5]], float)
QUERY_DIRECTIONS = np.array([*DIRECTIONS, [1, 2, -3, 7]], float)
THRESHOLDS = [-np.inf, -1.0, -0.5, 0.0, 0.25, 0.5, 0.6, 0.75, 1.0, 1.5]
TEXT = ["", "a", "b", "aa", "item 10", "Ärmel", "長い名前の品物", "𝔘nit", "ab\0c"]


@st.composite
def corpora(draw, least=0):
    """Ids, integers or text, and vectors."""
    some_ids = draw(
        st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.integers(0, 60), texts()])
    )
    ids = draw(st.lists(some_ids, min_size=least, max_size=40, unique=True))
    directions = draw(
        st.lists(st.integers(0, len(ITEM_DIRECTIONS) - 1), min_size=len(ids), max_size=len(ids))
    )
    kind = np.int64 if not ids or isinstance(ids[0], int) else str
    return np.array(ids, kind), ITEM_DIRECTIONS[directions].reshape(len(ids), 4)


def texts():
    """Ids of all widths; NumPy cannot tell a text from the same one with zeros after it."""
    free = st.text(st.characters(blacklist_categories=["Cs"]), max_size=6)
    return st.one_of(st.sampled_from(TEXT), free).map(lambda text: text.rstrip("\0"))


@st.composite
def requests(draw, most=20):
    """Keyword arguments of `search`."""
    rows = draw(st.lists(st.integers(0, len(QUERY_DIRECTIONS) - 1), min_size=0, max_size=most))
    thresholds = draw(st.lists(st.sampled_from(THRESHOLDS), min_size=len(rows), max_size=len(rows)))
    return {
        "queries": QUERY_DIRECTIONS[rows].reshape(len(rows), 4),
        "thresholds": thresholds,
        "top_k": draw(st.sampled_from([None, 1, 2, 5, 40, 10**30])),
        "limit": draw(st.sampled_from([1, 3, 10, 10_000, 10**31])),
    }


def assert_same(result, expected):
    """Every array of two results, and its dtype."""
    for name in (
        "row_splits", "item_ids", "scores", "thresholds", "expected_counts", "truncated",
    ):  # fmt: skip
        left, right = getattr(result, name), getattr(expected, name)
        np.testing.assert_array_equal(left, right, name)
        assert left.dtype == right.dtype, name
    assert result.partial is expected.partial


def assert_same_searcher(searcher, expected, request):
    """Answers, predictions and what a searcher says of itself."""
    assert_same(searcher.search(**request), expected.search(**request))
    asked = request["queries"], request["thresholds"]
    counts = searcher.expected_count(*asked)
    np.testing.assert_array_equal(counts, expected.expected_count(*asked))
    assert counts.dtype == np.float32
    assert len(searcher) == len(expected)
    assert searcher.dimension == expected.dimension
    assert searcher.id_dtype == expected.id_dtype


def assert_concurrent_callers_are_served(searcher):
    """Eight callers at once, each with requests of its own, get what one gets alone."""
    chance = np.random.default_rng(0)
    asked = [(chance.normal(size=(1 + number, 4)), number / 16) for number in range(16)]
    alone = [searcher.search(*request) for request in asked]
    together = threading.Barrier(8)

    def call(shift):
        together.wait()
        return [searcher.search(*asked[(shift + step) % len(asked)]) for step in range(len(asked))]

    with ThreadPoolExecutor(8) as threads:
        for shift, results in enumerate(threads.map(call, range(8))):
            for step, result in enumerate(results):
                assert_same(result, alone[(shift + step) % len(asked)])


def random_corpus(count=200, text=False):
    """An exact searcher of random items."""
    vectors = np.random.default_rng(1).normal(size=(count, 4))
    return ExactSearcher(vectors, [f"item {i}" for i in range(count)] if text else None)


def raises(kind, message):
    """Expects an error of exactly this text."""
    return pytest.raises(kind, match=f"^{re.escape(message)}$")


# Arguments of `search` that every searcher refuses.
BAD_REQUESTS = {
    "neither": {"queries": np.eye(4)},
    "dimension": {"queries": np.eye(5), "thresholds": 0.5},
    "rank": {"queries": np.ones(4), "thresholds": 0.5},
    "not finite": {"queries": [[1, 0, 0, 0], [np.nan, 0, 0, 1]], "thresholds": 0.5},
    "length zero": {"queries": np.zeros((7, 4)), "thresholds": 0.5},
    "number of thresholds": {"queries": np.eye(4), "thresholds": [0.5, 0.5]},
    "threshold NaN": {"queries": np.eye(4), "thresholds": [0.5, 0.5, np.nan, 0.5]},
    "top_k": {"queries": np.eye(4), "top_k": 0},
    "limit": {"queries": np.eye(4), "thresholds": 0.5, "limit": 2.5},
}
