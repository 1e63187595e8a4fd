"""HTTP routes of the explorer: files, headers, data and errors."""

import asyncio
import re
import threading
from types import SimpleNamespace

import httpx
import pytest
from evaluation_example import with_queries
from fastapi import FastAPI

from serving.errors import InvalidArgument, OverloadError, UnavailableError
from serving.explorer import routes
from serving.explorer.explain import explain
from serving.explorer.routes import MAX_WAITING, STATIC, examples, explorer_router

pytestmark = pytest.mark.anyio
PAGE = "index.html"


def client_of(retriever):
    """Calls the explorer's routes; errors that a route raises pass through."""
    app = FastAPI()
    app.include_router(explorer_router(retriever, query_characters=40))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test")


@pytest.fixture(scope="module")
def client(retriever):
    return client_of(retriever)


def test_nothing_is_inline_or_loaded_from_elsewhere():
    page = (STATIC / PAGE).read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page)
    for path in STATIC.iterdir():
        addresses = re.findall(r"https?://[^\s\"')]+", path.read_text())
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, path.name
    for path in STATIC.glob("*.js"):
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(", path.read_text())


async def test_files_have_a_type_and_a_tag_for_revalidation(client):
    kinds = {"html": "text/html", "js": "javascript", "css": "text/css", "svg": "image/svg+xml"}
    for address in ("/", *(f"/static/explorer/{path.name}" for path in STATIC.iterdir())):
        response = await client.get(address)
        assert response.status_code == 200
        name = address.rpartition("/")[2] or PAGE
        assert response.content == (STATIC / name).read_bytes()
        assert kinds[name.rpartition(".")[2]] in response.headers["content-type"]
        assert response.headers["cache-control"] == "no-cache"
        tag = response.headers["etag"]
        again = await client.get(address, headers={"if-none-match": f'"other", W/{tag}'})
        assert (again.status_code, again.content) == (304, b"")
        assert (await client.get(address, headers={"if-none-match": '"other"'})).status_code == 200
    for name in ("../routes.py", "%2e%2e%2froutes.py", "missing.js"):
        assert (await client.get(f"/static/explorer/{name}")).status_code == 404


async def test_the_report_is_that_of_the_release(client, retriever, tmp_path):
    response = await client.get("/report")
    assert response.content == retriever.release.report.read_bytes()
    assert response.headers["content-type"].startswith("text/html")
    policy = response.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    policy = (await client.get("/")).headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
    assert "unsafe" not in policy
    release = SimpleNamespace(report=tmp_path / "report.html")
    without = client_of(SimpleNamespace(release=release))
    with pytest.raises(UnavailableError, match=r"^the report of the release cannot be read\.$"):
        await without.get("/report")


async def test_data_of_a_query(client, retriever):
    parameters = {"query": "phone", "limit": 7, "knob": "top_k"}
    response = await client.get("/v1/explain", params=parameters)
    assert response.json() == explain(retriever, "phone", 7, "top_k")


async def test_errors_carry_their_field(client):
    for parameters, field, message in (
        ({"query": "a" * 41}, "query", "query must be at most 40 characters. Received: 41."),
        ({"limit": 0}, "limit", "limit must be a whole number from 1 to 150. Received: 0."),
    ):
        with pytest.raises(InvalidArgument) as caught:
            await client.get("/v1/explain", params={"query": "a", **parameters})
        assert (caught.value.field, str(caught.value)) == (field, message)


async def test_the_start_of_the_page(client, retriever):
    assert (await client.get("/v1/explain/start")).json() == {
        "release": retriever.release.version,
        "catalogue": 200,
        "limit": 150,
        "default": {"knob": "recall", "value": 0.9},
        "examples": [],
    }


def test_examples_are_spread_over_those_of_the_evaluation(tmp_path):
    def saved(texts):
        with_queries(*texts).save(tmp_path)
        return examples(tmp_path)

    assert examples(tmp_path) == []
    assert saved("ab") == ["a", "b"]
    assert saved("abcdefghijkl") == ["a", "c", "e", "g", "i", "l"]
    (tmp_path / "evaluation.json").write_text("{}")
    assert examples(tmp_path) == []


async def test_one_explanation_runs_at_a_time_and_few_wait(client, monkeypatch):
    release, running, most = threading.Event(), [], []

    def held(*_):
        running.append(None)
        most.append(len(running))
        assert release.wait(60)
        running.pop()
        return {}

    monkeypatch.setattr(routes, "explain", held)

    def task():
        return asyncio.create_task(client.get("/v1/explain?query=a"))

    tasks = [task() for _ in range(1 + MAX_WAITING)]
    while not running:
        await asyncio.sleep(0.001)
    with pytest.raises(OverloadError, match=r"^the explorer is busy: try again in a moment\.$"):
        await task()
    # A caller that stops waiting makes room.
    tasks.pop().cancel()
    await asyncio.sleep(0.001)
    tasks.append(task())
    await asyncio.sleep(0.001)
    release.set()
    assert {response.status_code for response in await asyncio.gather(*tasks)} == {200}
    assert most == [1] * (1 + MAX_WAITING)
