"""Losses of two-tower retrieval: pure functions with one value per example, and Keras layers."""
