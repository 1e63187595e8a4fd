"""The explorer in a real browser, on a real server."""

import json
import re

import pytest
from explorer_pages import HOSTILE, opened

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
        assert count(page) == len(answer.items.scores)
        assert listed(page) == answer.items.item_ids.tolist()
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
            answer = retriever.retrieve(["phone"], "recall", value)
            assert count(page) == len(answer.items.scores)
            assert listed(page) == answer.items.item_ids.tolist()
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
            answer = retriever.retrieve(["phone"], knob, shown)
            assert abs(shown - value) <= 0.1 * value
            assert count(page) == len(answer.items.scores)
            assert listed(page) == answer.items.item_ids.tolist()
            before = count(page)


def test_two_queries_share_the_slider(browser, service):
    retriever = service.retriever
    with opened(browser, service) as page:
        ask(page, "red phone")
        ask(page, "cable", "Compare with")
        page.wait_for_url("**/?q=red+phone&q2=cable&r=0.9")
        turn_to(page, 0.6)
        for at, query in enumerate(("red phone", "cable")):
            answer = retriever.retrieve([query], "recall", 0.6)
            assert count(page, at) == len(answer.items.scores)
            assert listed(page, at) == answer.items.item_ids.tolist()
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
        ask_without_answer = page.get_by_label("Query", exact=True)
        ask_without_answer.fill("phone")
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
