"""RetrievalEvaluator: measures a model on test clicks, blesses it or says why not."""

from components.retrieval_evaluator.component import RetrievalEvaluator

__all__ = ["RetrievalEvaluator"]
