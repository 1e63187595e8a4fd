"""Answers queries from a release: encode, search to each query's threshold, look the items up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betainc

from pebr_tf.config import Cutoff
from pebr_tf.config.retrieval import KNOBS, knob_requirement
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.cutoff.knobs import CutoffRule, ReleaseKnobs
from pebr_tf.release.payload import Payload
from pebr_tf.release.release import Release
from pebr_tf.retrieval import RangeResult, Searcher, load_index
from pebr_tf.retrieval.encoded import EncodedQueries
from pebr_tf.retrieval.result import assemble, take_rows
from serving.encoder import EmbeddedEncoder, Encoder
from serving.errors import InvalidArgument
from serving.retrieval import RetrievalRequest, RetrievalResponse, StageSeconds


@dataclass(eq=False)
class Retriever:
    """A loaded release. It keeps no state between requests: any number of threads may share it."""

    release: Release
    encoder: Encoder
    searcher: Searcher
    payload: Payload
    calibration: Calibration
    settings: Cutoff

    def __post_init__(self) -> None:
        self.knobs = ReleaseKnobs(self.calibration, self.settings)

    @classmethod
    def load(
        cls, directory: Path, verify: bool = True, encoder: Encoder | None = None
    ) -> Retriever:
        """Loads the release in a folder.

        `verify` compares the checksums of all files and repeats the index's check; without an
        `encoder`, the release's query model encodes in this process.
        """
        release = Release.load(directory, verify)
        return cls(
            release=release,
            encoder=encoder or EmbeddedEncoder(release.query_model),
            searcher=load_index(release.catalogue.index, verify, checksums=False),
            payload=Payload.load(release.catalogue.payload),
            calibration=Calibration.load(release.directory),
            settings=release.config().cutoff,
        )

    def retrieve(
        self,
        queries: Sequence[str],
        knob: str | None = None,
        value: float | None = None,
        limit: int | None = None,
    ) -> RetrievalResponse:
        """Returns the items of each query; the arguments are those of `RetrievalRequest`.

        Raises:
          InvalidArgument: A query is blank, the knob is unknown, or a number is out of range.
        """
        request = RetrievalRequest(tuple(queries), knob, value, limit)
        self.check(request)
        return self.answer([request])[0]

    def check(self, request: RetrievalRequest) -> None:
        """Raises InvalidArgument if this release cannot answer the request."""
        for query in request.queries:
            if not isinstance(query, str) or not query.strip():
                raise InvalidArgument(
                    "queries", f"query must be a text that is not blank. Received: {query!r}."
                )
        floor, limit = self.calibration.floor, self.calibration.limit
        if request.knob is not None:
            _check_knob(request.knob, request.value, floor, limit)
        elif request.value is not None:
            raise InvalidArgument(
                "value", f"value requires a knob. Received: {request.value!r} without one."
            )
        most = request.limit
        # A bool is no int here.
        if most is not None and not (type(most) is int and 1 <= most <= limit):
            raise InvalidArgument.must_be("limit", f"a whole number from 1 to {limit}", repr(most))
        columns = self.payload.columns
        for name in request.fields or ():
            if name not in columns:
                raise InvalidArgument.must_be("fields", f"among {', '.join(columns)}", repr(name))

    def answer(self, requests: Sequence[RetrievalRequest]) -> list[RetrievalResponse]:
        """Answers requests, which passed `check`, with one encoding and one search per policy."""
        begin = time.perf_counter()
        knobs = [self._knob(request) for request in requests]
        rules = [self.knobs.rule(*knob) for knob in knobs]
        sources = [rule.policy.level_source for rule in rules]
        encoded = self.encoder.encode(
            [query for request in requests for query in request.queries],
            max(request.deadline for request in requests),
            with_law=any(source == "sample" for source in sources),
        )
        encoded_at = time.perf_counter()
        # [B] the request that each query belongs to.
        owner = np.repeat(np.arange(len(requests)), [len(each.queries) for each in requests])
        items, levels = self._search(requests, rules, owner, encoded)
        encoded = encoded.with_law(levels, self.calibration.law.numpy_laws)
        searched_at = time.perf_counter()
        is_expected = np.array([rule.is_calibrated for rule in rules])[owner] & ~encoded.unfamiliar
        expected = np.where(is_expected, self._recalls(encoded, items.thresholds), np.nan)
        fields = self._fields(requests, items)
        ended_at = time.perf_counter()
        columns = tuple(self.payload.columns)
        responses, last = [], 0
        for request, (knob, value), source, item_fields in zip(
            requests, knobs, sources, fields, strict=True
        ):
            rows = slice(last, last := last + len(request.queries))
            responses.append(
                RetrievalResponse(
                    queries=request.queries,
                    knob=knob,
                    value=value,
                    release=self.release.version,
                    items=items.between(rows.start, rows.stop),
                    columns=columns if request.fields is None else request.fields,
                    fields=item_fields,
                    encoded=encoded.take(rows),
                    level_source=source,
                    expected_recall=expected[rows],
                    notes=self.calibration.notes(
                        knob,
                        value,
                        len(self.searcher),
                        float(items.counts[rows].sum()) / max(len(request.queries), 1),
                    ),
                    seconds=StageSeconds(
                        encode=encoded_at - begin,
                        search=searched_at - encoded_at,
                        lookup=ended_at - searched_at,
                    ),
                )
            )
        return responses

    def _search(
        self,
        requests: Sequence[RetrievalRequest],
        rules: Sequence[CutoffRule],
        owner: np.ndarray,
        encoded: EncodedQueries,
    ) -> tuple[RangeResult, np.ndarray]:
        most = self.calibration.limit
        limits = np.array([request.limit or most for request in requests])[owner]
        cutoffs = np.stack([rule.cutoffs for rule in rules])[owner, encoded.stratum]
        # Equal policies are mostly the same object, and comparing them takes time.
        policies = {id(rule.policy): rule.policy for rule in rules}
        if len(policies) == 1:
            items, levels = rules[0].policy.search(self.searcher, encoded, cutoffs, limits)
        else:
            levels, parts = np.empty_like(encoded.level), []
            for policy in set(policies.values()):
                rows = np.flatnonzero(np.array([rule.policy == policy for rule in rules])[owner])
                part = encoded.take(rows), cutoffs[rows], limits[rows]
                found, levels[rows] = policy.search(self.searcher, *part)
                parts.append((rows, found))
            items = assemble(parts)
        unfamiliar = encoded.unfamiliar & np.array([rule.is_calibrated for rule in rules])[owner]
        if unfamiliar.any():
            rows, others = np.flatnonzero(unfamiliar), np.flatnonzero(~unfamiliar)
            count = self.settings.unfamiliar_items or max(self.calibration.floor, 1)
            best = self.searcher.search(encoded.embedding[rows], top_k=count, limit=count)
            best = best.head(limits[rows])
            best = replace(best, thresholds=best.scores[best.row_splits[1:] - 1])
            items = assemble([(others, take_rows(items, others)), (rows, best)])
        return items, levels

    def _recalls(self, encoded: EncodedQueries, thresholds: np.ndarray) -> np.ndarray:
        """[B] shares of relevant items above cosines [B], by their laws; NaN for a cosine of -1."""
        z = (1 + np.clip(thresholds.astype(np.float64), -1, 1)) / 2
        recalls = self.calibration.share.value(betainc(encoded.alpha, encoded.beta, z))
        return np.where(z > 0, recalls, np.nan)

    def _fields(
        self, requests: Sequence[RetrievalRequest], items: RangeResult
    ) -> list[list[dict[str, str]]]:
        """Returns the fields of each request's items, in one lookup if all want the same."""
        ends = items.row_splits[np.cumsum([0, *(len(each.queries) for each in requests)])].tolist()
        parts = [slice(begin, end) for begin, end in itertools.pairwise(ends)]
        if len({request.fields for request in requests}) == 1:
            fields = self.payload.fields(items.item_ids, requests[0].fields)
            return [fields[part] for part in parts]
        return [
            self.payload.fields(items.item_ids[part], request.fields)
            for request, part in zip(requests, parts, strict=True)
        ]

    def _knob(self, request: RetrievalRequest) -> tuple[str, float]:
        if request.knob is None or request.value is None:
            return self.calibration.default_knob, self.calibration.default_value
        return request.knob, float(request.value)


def _check_knob(knob: str, value: Any, floor: int, limit: int) -> None:
    if knob not in KNOBS:
        raise InvalidArgument.must_be("knob", f"one of {', '.join(KNOBS)}", repr(knob))
    numeric = isinstance(value, int | float | np.integer | np.floating)
    number = float(value) if numeric and not isinstance(value, bool) else float("nan")
    if requirement := knob_requirement(knob, number, floor, limit):
        raise InvalidArgument.must_be(knob, requirement, repr(value))
