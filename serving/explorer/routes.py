"""The addresses of the explorer: the page, its files, its data, and the report of the release."""

from __future__ import annotations

import asyncio
import hashlib
import json
from pathlib import Path
from typing import Any, Protocol

import orjson
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.concurrency import run_in_threadpool

from serving.errors import InvalidArgument, Overloaded, Unavailable
from serving.explorer.explain import explain
from serving.knobs import KNOBS
from serving.retriever import Retriever

STATIC = Path(__file__).parent / "static"
PAGE = "index.html"
FILES = {
    "api.js": "text/javascript",
    "chart.js": "text/javascript",
    "controls.js": "text/javascript",
    "icon.svg": "image/svg+xml",
    "laws.js": "text/javascript",
    "list.js": "text/javascript",
    "main.js": "text/javascript",
    "markup.js": "text/javascript",
    "pane.js": "text/javascript",
    "state.js": "text/javascript",
    "style.css": "text/css",
    "words.js": "text/javascript",
}
# Nothing comes from elsewhere and nothing inline runs, whatever the text of an item tries.
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# A report is one file with its style inside; it loads nothing.
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
# An address may hold the text of a query, which is nobody else's business.
PRIVATE = {"referrer-policy": "no-referrer", "x-content-type-options": "nosniff"}
# Browsers ask whether their copy is still good: a few bytes, and never an old page.
REVALIDATED = {"cache-control": "no-cache"}
EXAMPLES = 6
# An explanation costs some hundred searches: one at a time, and few that wait.
WAITING = 8


class Engine(Protocol):
    """What the explorer needs of `serving.service.engine.Engine`."""

    def retriever(self) -> Retriever:
        """What answers now; raises Unavailable when there is none."""
        ...


def explorer_router(engine: Engine, query_characters: int = 512) -> APIRouter:
    """The routes of the explorer.

    Args:
      engine: What answers.
      query_characters: Of a query at most; `serving.limits.query_characters`.
    """
    router = APIRouter(include_in_schema=False)
    page = _File(STATIC / PAGE, "text/html", {"content-security-policy": PAGE_POLICY})
    files = {name: _File(STATIC / name, kind) for name, kind in FILES.items()}
    turns = Turns()

    @router.get("/")
    async def _page(request: Request) -> Response:
        return page.response(request)

    @router.get("/static/explorer/{name}")
    async def _static(name: str, request: Request) -> Response:
        if name not in files:
            raise HTTPException(404)
        return files[name].response(request)

    @router.get("/v1/explain")
    async def _explain(query: str, limit: int = 200, knob: str = KNOBS[0]) -> Response:
        if not query.strip():
            requirement = f"a text that is not blank. Received: {query!r}."
            raise InvalidArgument("query", f"query must be {requirement}")
        if len(query) > query_characters:
            requirement = f"at most {query_characters} characters. Received: {len(query)}."
            raise InvalidArgument("query", f"query must be {requirement}")
        retriever = engine.retriever()
        async with turns:
            return _json(await run_in_threadpool(explain, retriever, query, limit, knob))

    @router.get("/v1/explain/start")
    async def _start() -> Response:
        return _json(await run_in_threadpool(start, engine.retriever()))

    @router.get("/report")
    async def _report() -> Response:
        path = engine.retriever().release.path("report.html")
        try:
            content = await run_in_threadpool(path.read_bytes)
        except OSError:
            raise Unavailable("the report of the release cannot be read.") from None
        headers = {"content-security-policy": REPORT_POLICY, **REVALIDATED, **PRIVATE}
        return Response(content, media_type="text/html", headers=headers)

    return router


def start(retriever: Retriever) -> dict[str, Any]:
    """What the page shows before the first query: the release, and queries to begin with."""
    settings = retriever.settings
    return {
        "release": retriever.release.version,
        "catalogue": len(retriever.searcher),
        "limit": retriever.calibration.limit,
        "default": {"knob": settings.default_knob, "value": settings.default_value},
        "examples": examples(retriever.release.path("evaluation.json")),
    }


def examples(path: Path) -> list[str]:
    """Test queries that the evaluation of a release names, specific ones first; maybe none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8")).get("examples", [])
        queries = [each["query"] for each in found if isinstance(each["query"], str)]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []
    if len(queries) <= EXAMPLES:
        return queries
    # Evenly from the first to the last: they are in the order of their breadth.
    return [queries[place * (len(queries) - 1) // (EXAMPLES - 1)] for place in range(EXAMPLES)]


def _json(content: dict[str, Any]) -> Response:
    headers = {"cache-control": "no-store", **PRIVATE}
    return Response(orjson.dumps(content), media_type="application/json", headers=headers)


class _File:
    """A file of the page, read once."""

    def __init__(self, path: Path, kind: str, headers: dict[str, str] | None = None):
        self._content = path.read_bytes()
        tag = f'"{hashlib.sha256(self._content).hexdigest()[:32]}"'
        self._kind = kind
        self._headers = {"etag": tag, **REVALIDATED, **PRIVATE, **(headers or {})}

    def response(self, request: Request) -> Response:
        """The file, or word that the browser has it already."""
        known = request.headers.get("if-none-match", "")
        if self._headers["etag"] in (tag.strip().removeprefix("W/") for tag in known.split(",")):
            return Response(status_code=304, headers=self._headers)
        return Response(self._content, media_type=self._kind, headers=self._headers)


class Turns:
    """Lets one explanation run at a time, and refuses those that would wait behind many."""

    def __init__(self) -> None:
        self._waiting = 0
        self._one = asyncio.Semaphore(1)

    async def __aenter__(self) -> None:
        if self._waiting >= WAITING:
            raise Overloaded("the explorer is busy: try again in a moment.")
        self._waiting += 1
        try:
            await self._one.acquire()
        finally:
            self._waiting -= 1

    async def __aexit__(self, *_: object) -> None:
        self._one.release()
