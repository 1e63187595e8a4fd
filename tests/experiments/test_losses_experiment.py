"""Every loss with the same budget: tables by hand, and a small run."""

import pytest
from experiment_runs import output

from experiments import losses
from experiments.kinds import KINDS
from experiments.settings import Settings
from pebr_tf.report.formats import DASH

AVERAGES = (5, 15, 50)
WITHOUT_TAU = ("info", "info_one", "pointwise")


def hand_made(kind, seed):
    """Recall of the level rises with the place of the kind; maximum likelihood finds nothing."""
    place = list(KINDS).index(kind)
    level = (0.2, 0.5 + 0.01 * place + 0.02 * seed)
    at = {"level": level, "top_k": (0.1, 0.52), "score": (0.05, 0.4), "cdf": (0.3, 0.1)}
    if kind == "mle":
        at = dict.fromkeys(at, (0.001, 0.002))
    if kind in WITHOUT_TAU:
        del at["cdf"]
    return output({policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()})


@pytest.fixture(scope="module")
def results():
    outputs = {
        f"synthetic/{kind}/{seed}": hand_made(kind, seed) for kind in KINDS for seed in range(2)
    }
    return losses.results(Settings("small", 2, None), outputs)


def test_the_printed_table_is_that_of_the_middle(results):
    table = results.tables[0]
    assert table.title == "synthetic: precision and recall of every loss at k = 15"
    assert table.head == ("P/R", "level", "top k", "one cosine", "literal pEBR")
    cells = {row[0]: row[1:] for row in table.rows}
    assert list(cells) == [kind.title for kind in KINDS.values()]
    assert cells["BetaNCE"] == ("**.200**/.510", "**.100/.520**", "**.050/.400**", "**.300/.100**")
    assert cells["Pointwise"] == ("**.200/.570**", "**.100/.520**", "**.050/.400**", DASH)
    assert cells["Maximum likelihood"] == (".001/.002",) * 4
    assert "at most .000 in precision and .014 in recall" in table.note


def test_the_summary_names_the_best(results):
    (said,) = results.summary
    assert ".570 by level (Pointwise), .520 by top k (BetaNCE)" in said
    # Recall above .52: from the third kind to the seventh.
    assert "on the towers of 5 of 8 losses" in said
