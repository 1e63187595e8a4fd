"""A configuration that fits a synthetic data set."""

from pathlib import Path

from pebr_tf.config import Config, Cutoff, Data, Loss, Training


def config(directory: Path) -> Config:
    """A configuration for the data set in `directory`.

    The data is small and easy: a few hundred short steps are enough, and a trial of `loss.log_q`
    finds that it does not help. One click in twenty is noise, so a recall above 0.75 takes many
    more items than it is worth.
    """
    return Config(
        data=Data(
            click_log=str(directory / "clicks" / "*"),
            catalogue=str(directory / "catalogue" / "*"),
        ),
        loss=Loss(log_q=False),
        training=Training(steps=750, validation_interval=250),
        cutoff=Cutoff(default_value=0.75),
    )
