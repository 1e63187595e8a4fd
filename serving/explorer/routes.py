"""HTTP routes of the explorer: the page, its files, its data, and the release's report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.staticfiles import StaticFiles

from pebr_tf.config.retrieval import KNOBS
from serving.errors import InvalidArgument, OverloadError, UnavailableError
from serving.explorer.explain import example_queries, explain
from serving.retriever import Retriever

STATIC = Path(__file__).parent / "static"
# The address may contain a query, which no other site should see.
PRIVATE = {"referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
# Browsers revalidate their copy, so that they never show an old page.
REVALIDATED = {"cache-control": "no-cache", **PRIVATE}
# Nothing is loaded from elsewhere and nothing inline runs, whatever the text of an item contains.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {"content-security-policy": PAGE_POLICY, **REVALIDATED}
# A report is one file with its style inside; it loads nothing.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
REPORT_HEADERS = {"content-security-policy": REPORT_POLICY, **REVALIDATED}
EXAMPLES = 6
# An explanation costs about a hundred searches: one runs at a time, and few may wait.
MAX_WAITING = 8


def explorer_router(
    current_retriever: Callable[[], Retriever], query_characters: int = 512
) -> APIRouter:
    """The routes of the explorer.

    `current_retriever` raises UnavailableError if there is no release.
    """
    router = APIRouter(include_in_schema=False)
    static = StaticFiles(directory=STATIC)
    queue = ExplanationQueue()

    @router.get("/")
    async def _page(request: Request) -> Response:
        return await _static("index.html", request)

    @router.get("/static/explorer/{name}")
    async def _static(name: str, request: Request) -> Response:
        response = await static.get_response(name, request.scope)
        response.headers.update(PAGE_HEADERS)
        return response

    @router.get("/v1/explain")
    async def _explain(query: str, limit: int = 200, knob: str = KNOBS[0]) -> Response:
        if not query.strip():
            requirement = f"a text that is not blank. Received: {query!r}."
            raise InvalidArgument("query", f"query must be {requirement}")
        if len(query) > query_characters:
            requirement = f"at most {query_characters} characters. Received: {len(query)}."
            raise InvalidArgument("query", f"query must be {requirement}")
        retriever = current_retriever()
        async with queue:
            return _json(await run_in_threadpool(explain, retriever, query, limit, knob))

    @router.get("/v1/explain/start")
    async def _start() -> Response:
        return _json(await run_in_threadpool(start, current_retriever()))

    @router.get("/report")
    async def _report() -> Response:
        path = current_retriever().release.report
        try:
            content = await run_in_threadpool(path.read_bytes)
        except OSError:
            raise UnavailableError("the report of the release cannot be read.") from None
        return Response(content, media_type="text/html", headers=REPORT_HEADERS)

    return router


def start(retriever: Retriever) -> dict[str, Any]:
    """The content of the page before the first query: the release, and example queries."""
    calibration = retriever.calibration
    return {
        "release": retriever.release.version,
        "catalogue": len(retriever.searcher),
        "limit": calibration.limit,
        "default": {"knob": calibration.default_knob, "value": calibration.default_value},
        "examples": examples(retriever.release.directory),
    }


def examples(release: Path) -> list[str]:
    """Queries to try, specific ones first; may be empty."""
    queries = [example.query for example in example_queries(release)]
    if len(queries) <= EXAMPLES:
        return queries
    # Evenly spaced from the first to the last: the evaluation orders them by breadth.
    return [queries[index * (len(queries) - 1) // (EXAMPLES - 1)] for index in range(EXAMPLES)]


def _json(content: dict[str, Any]) -> Response:
    headers = {"cache-control": "no-store", **PRIVATE}
    return Response(orjson.dumps(content), media_type="application/json", headers=headers)


class ExplanationQueue:
    """Runs one explanation at a time, and rejects new ones while MAX_WAITING wait."""

    def __init__(self) -> None:
        self._waiting = 0
        self._semaphore = asyncio.Semaphore(1)

    async def __aenter__(self) -> None:
        if self._waiting >= MAX_WAITING:
            raise OverloadError("the explorer is busy: try again in a moment.")
        self._waiting += 1
        try:
            await self._semaphore.acquire()
        finally:
            self._waiting -= 1

    async def __aexit__(self, *_: object) -> None:
        self._semaphore.release()
