"""Measures policies, knobs and the index on the clicks of the split `test`."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tfx.types import Artifact

from components.pairs import QUERY_LIMIT, ClickLogPairs, read_pairs, read_training_pairs
from components.retrieval_evaluator.baseline import ComparedClicks
from components.retrieval_evaluator.searching import Search, index_recall, latency
from pebr_tf.config import Cutoff, Evaluation
from pebr_tf.cutoff.calibration import Calibration
from pebr_tf.cutoff.candidates import (
    Candidates,
    ClickedPairs,
    QueryVectors,
    candidate_depth,
    collect_candidates,
)
from pebr_tf.cutoff.evaluation import KnobEvaluation, evaluate_policies, own_gain
from pebr_tf.cutoff.policies.adapter import fit_adapter
from pebr_tf.cutoff.policies.base import Policy
from pebr_tf.cutoff.policies.registry import evaluated_policies
from pebr_tf.errors import UserError
from pebr_tf.metrics.significance import Evidence
from pebr_tf.metrics.strata import STRATA
from pebr_tf.release.evaluation import (
    DataSummary,
    IndexResult,
    LatencyResult,
    ModelEvaluation,
    ModelSummary,
)
from pebr_tf.release.towers import TowersDescription
from pebr_tf.retrieval import ExactSearcher, load_index
from pebr_tf.retrieval.artifact import IndexManifest
from pebr_tf.retrieval.encoded import ENCODED_FIELDS, EncodedQueries
from serving.encoder import EmbeddedEncoder

BATCH = 256


@dataclass(frozen=True)
class Subject:
    """The model under evaluation, with item vectors [N, n] and ids [N]."""

    towers: TowersDescription
    calibration: Calibration
    encoder: EmbeddedEncoder
    vectors: np.ndarray
    ids: np.ndarray
    index: Path

    def encode(self, texts: Sequence[str]) -> EncodedQueries:
        batches = [
            self.encoder.encode(texts[begin : begin + BATCH])
            for begin in range(0, len(texts), BATCH)
        ]
        columns = {
            name: np.concatenate([getattr(batch, name) for batch in batches])
            for name in ENCODED_FIELDS
        }
        return EncodedQueries(**columns)

    def candidates(
        self,
        clicked: ClickLogPairs,
        encoded: EncodedQueries,
        average_k: Sequence[int],
        limit: int,
        known: ClickedPairs | None = None,
    ) -> Candidates:
        """The best items of encoded queries among all of the catalogue."""
        queries = QueryVectors(
            encoded.embedding,
            encoded.tau,
            encoded.stratum,
            alpha=encoded.alpha,
            beta=encoded.beta,
            unfamiliar=encoded.unfamiliar,
        )
        found = collect_candidates(
            self.vectors,
            queries,
            clicked.pairs(self.ids),
            self.calibration.family,
            sorted({self.calibration.level_temperature, 1.0}),
            candidate_depth(len(queries), len(self.ids), average_k, limit),
            known,
        )
        return dataclasses.replace(found, sample_levels=encoded.level)


def measure(
    examples: Artifact, subject: Subject, settings: Cutoff, evaluation: Evaluation
) -> tuple[ModelEvaluation, Evidence, ComparedClicks]:
    """The evaluation without gates and comparisons, its evidence, and its clicks.

    Raises:
      UserError: No test query has clicks.
    """
    average_k = evaluation.average_k
    calibrate = read_pairs(examples, "calibrate").limited(QUERY_LIMIT)
    everything = read_pairs(examples, "test")
    if subject.calibration.folds:
        everything = calibrate.joined(everything)
    if not everything.queries:
        raise UserError("the split test must have clicks. Received: none.")
    clicked = everything.limited(evaluation.max_queries or QUERY_LIMIT)
    known, train_clicks = read_training_pairs(examples, clicked.queries)
    encoded = subject.encode(clicked.queries)
    candidates = subject.candidates(
        clicked, encoded, average_k, settings.limit, known.pairs(subject.ids)
    )
    knobs = KnobEvaluation(subject.calibration, candidates, settings)
    default = knobs.policy.name
    policies = _policies(subject, calibrate, average_k, settings)
    if default not in {policy.name for policy in policies}:
        policies = (knobs.policy, *policies)
    unseen, offsets = candidates.unseen(), subject.calibration.offsets
    index, latencies, index_recalls = _index(subject, encoded, settings)
    result = ModelEvaluation(
        model=ModelSummary(
            loss=subject.towers.loss,
            log_q=bool(subject.towers.config["loss"]["log_q"]),
            family=subject.calibration.family,
            dimension=subject.towers.dimension,
            steps=subject.towers.steps,
            policy=subject.calibration.policy,
            level_temperature=subject.calibration.level_temperature,
        ),
        data=DataSummary(
            items=len(subject.ids),
            train_clicks=train_clicks,
            calibrate_queries=subject.calibration.queries,
            test_queries=len(clicked.queries),
            test_clicks=everything.clicks,
            strata={name: int(np.sum(encoded.stratum == i)) for i, name in enumerate(STRATA)},
            # TFX gives the span 0 to examples without one.
            span=examples.span or None,
        ),
        average_k=list(average_k),
        policies=evaluate_policies(policies, candidates, average_k, default, offsets, True),
        unseen=evaluate_policies(policies, unseen, average_k, default, offsets)
        if len(unseen)
        else [],
        calibration=knobs.calibration_result(),
        default_knob=knobs.default_knob(),
        budget=knobs.budget(average_k),
        counts=knobs.histogram(),
        examples=knobs.examples(clicked.queries),
        index=index,
        latency=latencies,
    )
    gain = own_gain(candidates, subject.vectors, clicked.pairs(subject.ids), min(average_k))
    evidence = knobs.evidence(result.middle_k, gain, index_recalls)
    tuned_on = calibrate if calibrate.queries else clicked
    compared = ComparedClicks(clicked, tuned_on, encoded.stratum, subject.ids)
    return result, evidence, compared


def _policies(
    subject: Subject, calibrate: ClickLogPairs, average_k: Sequence[int], settings: Cutoff
) -> tuple[Policy, ...]:
    """All policies; without the adapter if its calibrate queries are evaluated, too."""
    if subject.calibration.folds:
        return evaluated_policies(subject.calibration.level_temperature)
    encoded = subject.encode(calibrate.queries)
    # The adapter learns from where lists end, well within four times the largest average.
    depth = min(settings.limit, 4 * max(average_k))
    candidates = subject.candidates(calibrate, encoded, average_k, depth)
    return evaluated_policies(subject.calibration.level_temperature, fit_adapter(candidates))


def _index(
    subject: Subject, encoded: EncodedQueries, settings: Cutoff
) -> tuple[IndexResult, list[LatencyResult], np.ndarray]:
    """The index's recall and latency, and its recalls [I, 2] by query."""
    searcher = load_index(subject.index)
    exact = ExactSearcher(subject.vectors, subject.ids, background=searcher.background)
    search = Search(subject.calibration, settings)
    recalls = index_recall(searcher, exact, encoded, search)
    macro, micro = map(float, recalls.mean(axis=0))
    kind = IndexManifest.load(subject.index).kind
    result = IndexResult(kind, len(searcher), macro, micro, len(recalls))
    return result, latency(searcher, encoded, search), recalls
