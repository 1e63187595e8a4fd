"""RetrievalEvaluator: measures a model on test clicks, and blesses it or gives reasons."""

from components.retrieval_evaluator.component import RetrievalEvaluator

__all__ = ["RetrievalEvaluator"]
