"""Modules of the explorer, called in a browser: the list, the maths, the sentences."""

import numpy as np
import pytest
from explorer_pages import opened

from pebr_tf.distributions import Beta
from pebr_tf.distributions.logit import relevance_logit

pytestmark = pytest.mark.slow


def test_what_the_index_missed_is_shown_without_a_rank(browser, service):
    items = [{"item_id": f"i{at}", "score": 0.9 - 0.01 * at, "fields": {}} for at in range(60)]
    data = {"items": items, "columns": [], "catalogue": 90, "limit": 100}
    stop = {"count": 40, "missed": [2, 30, 39], "threshold": 0.475, "truncated": False}
    with opened(browser, service) as page:
        rows = page.evaluate(
            """async ([data, stop]) => {
              const { fillList } = await import("/static/explorer/list.js");
              const list = document.createElement("ol");
              fillList(list, data, stop, 0, () => {});
              return [...list.children].map((row) => [
                row.className,
                row.querySelector(".rank")?.textContent ?? "",
                (row.querySelector(".title") ?? row.firstElementChild).textContent,
              ]);
            }""",
            [data, stop],
        )
    best = [["kept", "1", "i0"], ["kept", "2", "i1"], ["missed", "–", "i2"], ["kept", "3", "i3"]]
    assert rows[:4] == best
    assert rows[12:14] == [["kept", "12", "i12"], ["gap", "", "22 more"]]
    last = [["missed", "–", "i39"], ["kept", "38", "i40"], ["kept", "39", "i41"]]
    assert rows[14:21] == [*(["kept", str(at), f"i{at + 1}"] for at in (35, 36, 37)), *last, [
        "kept", "40", "i42"
    ]]  # fmt: skip
    assert rows[21] == ["cut", "", "The list ends here"]
    assert rows[22:] == [
        *(["below", str(at), f"i{at + 2}"] for at in range(41, 49)),
        ["gap", "", "39 items further down"],
    ]


def test_the_maths_of_the_page(browser, service):
    retriever = service.retriever
    encoded = retriever.encoder.encode(["phone"])
    cosines = [-0.99995, -0.5, 0.0, 0.3, 0.8, 1.0]
    best = 0.9
    law = {
        "tau": float(encoded.tau[0]),
        "background_alpha": float(encoded.background_alpha[0]),
        "background_beta": float(encoded.background_beta[0]),
        "items": [{"score": best}],
    }
    background = Beta(law["background_alpha"], law["background_beta"])
    with opened(browser, service) as page:
        for family in ("beta", "exponential"):
            found = page.evaluate(
                """async ([data, cosines]) => {
                  const laws = await import("/static/explorer/laws.js");
                  return cosines.map((each) => Math.log(laws.relevance(data, each)));
                }""",
                [{**law, "family": family}, cosines],
            )
            logits = np.array(relevance_logit(np.array([*cosines, best]), law["tau"], family))
            np.testing.assert_allclose(found, logits[:-1] - logits[-1], rtol=1e-6, atol=1e-9)
        found = page.evaluate(
            """async ([data, cosines]) => {
              const laws = await import("/static/explorer/laws.js");
              return laws.density(data.background_alpha, data.background_beta, cosines);
            }""",
            [law, cosines[1:-1]],
        )
        exact = np.exp(background.log_prob(np.array(cosines[1:-1])))
        np.testing.assert_allclose(found, exact, rtol=1e-3)


def test_the_sentences_of_the_page(browser, service):
    items = [{"score": 0.9 - 0.01 * at} for at in range(30)]
    usual = {
        "knob": "recall", "policy": "level", "stratum": "tail", "family": "beta", "tau": 0.02,
        "floor": 1, "limit": 20, "items": items,
    }  # fmt: skip
    stop = {
        "value": 0.8, "count": 7, "threshold": 0.835, "cutoff": np.log(2.6), "truncated": False,
        "expected_recall": 0.8, "missed": [],
    }  # fmt: skip
    cases = [
        ({}, {}, "Ends at cosine 0.835: the model rates items below it less than 18% as "
                 "relevant as the best item."),
        ({"tau": 0.005}, {}, "Ends at cosine 0.835: the model rates items below it less than "
                             "1/1,100 as relevant as the best item."),
        ({}, {"count": 1, "threshold": 0.9},
         "Ends after the best item, the minimum for every query."),
        ({"floor": 3}, {"count": 3, "threshold": 0.88},
         "Ends after 3 items, the minimum for every query."),
        ({}, {"count": 20, "truncated": True, "threshold": 0.5},
         "Ends at the limit of 20 items, above its threshold of 0.500."),
        ({}, {"count": 20, "truncated": True, "threshold": None}, "Ends at the limit of 20 items."),
        ({}, {"truncated": True}, "Ends early: the index returns no more items for one query."),
        ({"unfamiliar": True}, {"count": 1}, "Ends after 1 item: the model knows nothing of this "
                                             "query."),
        ({"policy": "share"}, {}, "Ends at cosine 0.835: by the law of this query, 80% of its "
                                  "relevant items are above it."),
        ({"policy": "score"}, {}, "Ends at cosine 0.835, like every tail query."),
        ({"policy": "score", "knob": "score"}, {}, "Ends at cosine 0.835, like every query."),
        ({"policy": "gap"}, {"cutoff": -0.065},
         "Ends at cosine 0.835, 0.065 below the best item, like every tail query."),
        ({"policy": "top_k"}, {"threshold": None}, "Ends after 7 items, like every tail query."),
        ({"policy": "nucleus"}, {"threshold": None, "cutoff": np.log(0.04)},
         "Ends where its items hold 96% of the relevance of the whole catalogue, like every "
         "tail query."),
        ({"items": []}, {"count": 0}, "The catalogue has no items."),
    ]  # fmt: skip
    with opened(browser, service) as page:
        sentences = page.evaluate(
            """async (cases) => {
              const words = await import("/static/explorer/words.js");
              return cases.map(([data, stop]) => words.reason(data, stop));
            }""",
            [[{**usual, **data}, {**stop, **other}] for data, other, _ in cases],
        )
        assert sentences == [text for _, _, text in cases]
        rule, none, expected, truncated = page.evaluate(
            """async ([data, stop]) => {
              const words = await import("/static/explorer/words.js");
              return [
                words.rule(data, stop),
                words.rule({ ...data, policy: "cdf" }, stop),
                words.expectation(stop),
                words.expectation({ ...stop, truncated: true }),
              ];
            }""",
            [usual, stop],
        )
        assert rule == (
            "At recall 0.80, every tail query ends at 2.6 times its own level, a mean of the "
            "relevance of all items."
        )
        assert none is None
        assert expected == "Expected to contain 80% of the relevant items."
        assert truncated == "Without the limit, it would contain about 80% of the relevant items."
