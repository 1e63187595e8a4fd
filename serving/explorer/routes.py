"""HTTP routes of the explorer: the page, its files, its data, and the release's report."""

from pathlib import Path
from typing import Any

import anyio
from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles

from pebr_tf.config.retrieval import KNOBS
from serving.errors import InvalidArgument, OverloadError, UnavailableError
from serving.explorer.explain import example_queries, explain
from serving.retriever import Retriever

STATIC = Path(__file__).parent / "static"
# Browsers revalidate their copy, so that they never show an old page.
REVALIDATED = {"cache-control": "no-cache"}
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


def explorer_router(retriever: Retriever, query_characters: int) -> APIRouter:
    router = APIRouter(include_in_schema=False)
    static = StaticFiles(directory=STATIC)
    limiter = anyio.CapacityLimiter(1)

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
            raise InvalidArgument.must_be("query", "a text that is not blank", repr(query))
        if len(query) > query_characters:
            requirement = f"at most {query_characters} characters"
            raise InvalidArgument.must_be("query", requirement, len(query))
        if limiter.statistics().tasks_waiting >= MAX_WAITING:
            raise OverloadError("the explorer is busy: try again in a moment.")
        arguments = (retriever, query, limit, knob)
        return JSONResponse(await anyio.to_thread.run_sync(explain, *arguments, limiter=limiter))

    @router.get("/v1/explain/start")
    async def _start() -> Response:
        return JSONResponse(await run_in_threadpool(start, retriever))

    @router.get("/report")
    async def _report() -> Response:
        path = retriever.release.report
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
