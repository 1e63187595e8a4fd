"""RetrievalEvaluator: measures a model on test clicks, and blesses it or gives reasons."""
