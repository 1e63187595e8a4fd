"""Training of the towers: batches, optimizers, the loop with its checkpoints, warm starts."""
