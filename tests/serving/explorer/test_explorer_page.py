"""The explorer in a real browser, on a real server: the page, then its modules by themselves."""

import json
import re

import numpy as np
import pytest
from explorer_pages import HOSTILE, opened

from pebr_tf.distributions import Beta
from pebr_tf.distributions.logit import relevance_logit

pytestmark = pytest.mark.slow


def ask(page, text, box="Query"):
    page.get_by_label(box, exact=True).fill(text)
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=text, exact=True).wait_for()


def count(page, at=0):
    return int(page.get_by_role("status").nth(at).inner_text().split()[0].replace(",", ""))


def listed(page, at=0):
    """Ids of the items in a list, all of them opened."""
    pane = page.locator(".pane").nth(at)
    while pane.locator(".gap button").count():
        pane.locator(".gap button").click()
    return pane.locator("li.kept .id").all_inner_texts()


def assert_shows(page, answer, at=0):
    """That a pane shows the list of a response, and no other."""
    assert count(page, at) == len(answer.items.scores)
    assert listed(page, at) == answer.items.item_ids.tolist()


def evaluated(page, module, function, *arguments):
    """What a function in JavaScript makes of a module of the page and of arguments."""
    path = f"/static/explorer/{module}.js"
    script = f"async (given) => ({function})(await import('{path}'), ...given)"
    return page.evaluate(script, list(arguments))


def turn_to(page, value):
    box = page.locator("#value")
    box.fill(str(value))
    box.blur()


def test_a_query_shows_its_list_and_why_it_ends(browser, service):
    retriever = service.retriever
    with opened(browser, service) as page:
        page.get_by_role("button", name="red phone", exact=True).wait_for()
        assert page.evaluate("document.activeElement.id") == "query"
        page.keyboard.type("phone")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="phone", exact=True).wait_for()
        answer = retriever.retrieve(["phone"])
        assert_shows(page, answer)
        threshold = float(answer.items.thresholds[0])
        reason = page.locator(".reason").inner_text()
        assert reason.startswith(f"Ends at cosine {threshold:.3f}".replace("-", "−"))
        assert page.locator("li.cut .score").inner_text() in reason
        assert page.locator("text.cut").text_content() in reason
        header = page.locator("#release").inner_text()
        assert f"Release {retriever.release.version}" in header
        page.get_by_role("link", name="Report").click()
        page.get_by_text("report", exact=True).wait_for()


def test_the_slider_gives_what_the_service_answers_without_a_request(browser, service):
    retriever = service.retriever
    with opened(browser, service, "/?q=phone&r=0.5") as page:
        page.get_by_role("heading", name="phone", exact=True).wait_for()
        lengths = set()
        for value in (0.01, 0.68, 0.83, 0.99):
            turn_to(page, value)
            assert_shows(page, retriever.retrieve(["phone"], "recall", value))
            lengths.add(count(page))
        assert len(lengths) == 4
        # The slider itself, dragged by the mouse to its ends.
        slider = page.locator("#slider").bounding_box()
        middle = slider["y"] + slider["height"] / 2
        page.mouse.move(slider["x"] + slider["width"] / 2, middle)
        page.mouse.down()
        page.mouse.move(slider["x"] + 1, middle)
        shortest = count(page)
        page.mouse.move(slider["x"] + slider["width"] - 1, middle)
        page.mouse.up()
        assert (shortest, count(page)) == (min(lengths), max(lengths))
        # It rests now, and what it would ask for, it has asked for.
        page.wait_for_url("**/?q=phone&r=0.99")
        asked = [url.rpartition("/v1/")[2] for url in page.requests if "/v1/" in url]
        assert asked == ["explain/start", "explain?query=phone&knob=recall&limit=150"]


def test_every_knob(browser, service):
    retriever = service.retriever
    with opened(browser, service, "/?q=phone") as page:
        page.get_by_role("heading", name="phone", exact=True).wait_for()
        before = count(page)
        for name, knob, value in (
            ("Top k", "top_k", 22),
            ("Score", "score", 0.31),
            ("Budget", "budget", 40),
        ):
            page.get_by_label(name, exact=True).check()
            page.locator("#controls", has_text=re.compile("Lowest|Items")).wait_for()
            page.wait_for_url(re.compile(rf"[?&]{knob}="))
            # Another knob begins where the list is about as long.
            assert abs(count(page) - before) <= max(3, before // 4)
            turn_to(page, value)
            shown = float(page.locator("#value").input_value())
            assert abs(shown - value) <= 0.1 * value
            assert_shows(page, retriever.retrieve(["phone"], knob, shown))
            before = count(page)


def test_two_queries_share_the_slider(browser, service):
    retriever = service.retriever
    with opened(browser, service) as page:
        ask(page, "red phone")
        ask(page, "cable", "Compare with")
        page.wait_for_url("**/?q=red+phone&q2=cable&r=0.9")
        turn_to(page, 0.6)
        for at, query in enumerate(("red phone", "cable")):
            assert_shows(page, retriever.retrieve([query], "recall", 0.6), at)
        page.wait_for_url("**/?q=red+phone&q2=cable&r=0.6")
        shared = page.url
        page.go_back()
        page.locator(".pane").nth(1).wait_for(state="detached")
        page.goto(shared)
        page.get_by_role("heading", name="cable", exact=True).wait_for()
        assert count(page, 1) == len(retriever.retrieve(["cable"], "recall", 0.6).items.scores)


def test_hostile_text_stays_text(browser, service):
    with opened(browser, service) as page:
        ask(page, HOSTILE)
        assert page.locator("h2").inner_text() == HOSTILE
        assert f"note {HOSTILE}" in page.locator("li.kept").first.inner_text()
        assert page.locator("img").count() == 0
        assert page.title() == HOSTILE
        page.reload()
        page.get_by_role("heading", name=HOSTILE, exact=True).wait_for()
        assert page.get_by_label("Query", exact=True).input_value() == HOSTILE


def test_what_is_typed_while_the_page_loads_stays(browser, service):
    with opened(browser, service, "/report") as page:
        first = []
        page.route(
            "**/v1/explain/start",
            lambda route: route.continue_() if first else first.append(route),
        )
        page.goto(service.address)
        page.wait_for_function("document.activeElement.id === 'query'")
        page.keyboard.type("phone")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="phone", exact=True).wait_for()
        with page.expect_response("**/v1/explain/start"):
            first[0].continue_()
        page.wait_for_url("**/?q=phone&r=0.9")
        assert page.get_by_label("Query", exact=True).input_value() == "phone"


def test_an_error_is_one_calm_sentence_and_goes_away(browser, service):
    with opened(browser, service, complaints=("422", "ERR_FAILED")) as page:
        page.get_by_role("button", name="red phone", exact=True).wait_for()
        page.get_by_label("Query", exact=True).fill("a" * 600)
        page.keyboard.press("Enter")
        alert = page.get_by_role("alert")
        alert.wait_for()
        assert alert.inner_text() == "Query must be at most 512 characters. Received: 600."
        page.route("**/v1/explain?*", lambda route: route.abort())
        page.get_by_label("Query", exact=True).fill("phone")
        page.keyboard.press("Enter")
        page.get_by_text("The service does not respond.", exact=True).wait_for()
        page.unroute("**/v1/explain?*")
        ask(page, "phone")
        assert alert.count() == 0


def test_a_token_is_asked_for_and_used(browser, service):
    def guard(route):
        if route.request.headers.get("authorization") == "Bearer secret":
            route.continue_()
        else:
            route.fulfill(status=401, body=json.dumps({"error": {"message": "no"}}))

    with opened(browser, service, complaints=("401",)) as page:
        page.route("**/v1/**", guard)
        page.goto(f"{service.address}/?q=phone")
        page.get_by_label("The service requires a token").fill("wrong")
        page.keyboard.press("Enter")
        page.get_by_label("The service requires a token").fill("secret")
        page.keyboard.press("Enter")
        page.get_by_role("heading", name="phone", exact=True).wait_for()
        assert page.locator("#token").is_hidden()
        assert "secret" not in page.url
        with page.expect_download() as download:
            page.get_by_role("button", name="Report").click()
        version = service.retriever.release.version
        assert download.value.suggested_filename == f"report-{version}.html"


def test_longer_lists_than_come_at_first_are_asked_for(browser, service):
    retriever = service.retriever
    with opened(browser, service) as page:
        # As if a thousand items were fifty.
        page.route(
            "**/static/explorer/main.js",
            lambda route: route.fulfill(
                response=(answer := route.fetch()),
                body=answer.text().replace("FIRST_LIMIT = 1000", "FIRST_LIMIT = 50"),
            ),
        )
        page.goto(f"{service.address}/?q=phone&r=0.3")
        page.get_by_role("heading", name="phone", exact=True).wait_for()
        turn_to(page, 0.9)
        answer = retriever.retrieve(["phone"], "recall", 0.9)
        assert count(page) == len(answer.items.scores) > 60
        page.locator("li.below").first.wait_for()
        assert listed(page) == answer.items.item_ids.tolist()


def test_what_the_index_missed_is_shown_without_a_rank(browser, service):
    items = [{"item_id": f"i{at}", "score": 0.9 - 0.01 * at, "fields": {}} for at in range(60)]
    data = {"items": items, "columns": [], "catalogue": 90, "limit": 100}
    stop = {"count": 40, "missed": [2, 30, 39], "threshold": 0.475, "truncated": False}
    filled = """(module, data, stop) => {
      const list = document.createElement("ol");
      module.fillList(list, data, stop, 0, () => {});
      return [...list.children].map((row) => [
        row.className,
        row.querySelector(".rank")?.textContent ?? "",
        (row.querySelector(".title") ?? row.firstElementChild).textContent,
      ]);
    }"""
    with opened(browser, service) as page:
        rows = evaluated(page, "list", filled, data, stop)
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
            relevance = "(laws, data, all) => all.map((x) => Math.log(laws.relevance(data, x)))"
            found = evaluated(page, "laws", relevance, {**law, "family": family}, cosines)
            logits = np.array(relevance_logit(np.array([*cosines, best]), law["tau"], family))
            np.testing.assert_allclose(found, logits[:-1] - logits[-1], rtol=1e-6, atol=1e-9)
        density = "(laws, alpha, beta, cosines) => laws.density(alpha, beta, cosines)"
        shape = law["background_alpha"], law["background_beta"]
        found = evaluated(page, "laws", density, *shape, cosines[1:-1])
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
        ({"policy": "cdf_pdf"}, {}, "Ends at cosine 0.835: the model rates items below it less "
                                    "than 18% as relevant as the best item."),
        ({"policy": "share", "knob": "budget"}, {"value": 50},
         "Ends at cosine 0.835: by the law of this query, 80% of its relevant items are above it."),
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
        reasons = "(words, cases) => cases.map(([data, stop]) => words.reason(data, stop))"
        merged = [[{**usual, **data}, {**stop, **other}] for data, other, _ in cases]
        sentences = evaluated(page, "words", reasons, merged)
        assert sentences == [text for _, _, text in cases]
        rules = "(words, policies, stop) => policies.map((data) => words.rule(data, stop))"
        rule, none = evaluated(page, "words", rules, [usual, {**usual, "policy": "cdf"}], stop)
        expectations = "(words, stops) => stops.map(words.expectation)"
        stops = [stop, {**stop, "truncated": True}]
        expected, truncated = evaluated(page, "words", expectations, stops)
        assert rule == (
            "At recall 0.80, every tail query ends at 2.6 times its own level, a mean of the "
            "relevance of all items."
        )
        assert none is None
        assert expected == "Expected to contain 80% of the relevant items."
        assert truncated == "Without the limit, it would contain about 80% of the relevant items."
