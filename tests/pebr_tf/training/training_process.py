"""A training in a process of its own, to be killed: FOLDER, and the step after which it ends."""

import json
import os
import signal
import sys
from pathlib import Path

import pebr_tf  # noqa: F401  (prepares the process before TensorFlow is imported)


def main(folder, kill_at):
    from training_cases import model_of, parse, small

    from pebr_tf.training.batches import training_batches, validation_batches
    from pebr_tf.training.loop import LOG_INTERVAL, Trainer
    from pebr_tf.training.optimizers import optimizer_of

    config = small(
        training__steps=6 * LOG_INTERVAL,
        training__checkpoint_interval=2 * LOG_INTERVAL,
        training__validation_interval=LOG_INTERVAL,
    )
    training = config.training
    files = [str(path) for path in sorted(folder.glob("*.gz"))]
    validation = validation_batches(files, parse, training)
    trainer = Trainer(
        model_of(config, validation[0]), optimizer_of(training), training, folder / "checkpoints"
    )

    def progress(step, loss):
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    batches = training_batches(files, parse, training, trainer.resumed_from)
    trained = trainer.run(batches, validation, progress)
    iterations = int(trainer._model.optimizer.iterations)
    print(json.dumps({"trained": vars(trained), "iterations": iterations}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
