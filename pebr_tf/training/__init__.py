"""Training of the towers: batches, optimizers, the loop, checkpoints, workers, warm starts."""
