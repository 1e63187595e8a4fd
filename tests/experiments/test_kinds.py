"""Kinds and variants of towers: valid everywhere, and shared between experiments."""

from pathlib import Path

import pytest

from experiments import ablation, corpus_size, losses, recall_at
from experiments.ablation_variants import variants_of
from experiments.kinds import KINDS
from experiments.settings import GOODBOOKS, SCALES, SYNTHETIC, ExperimentSettings
from experiments.step import Store


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dataset", [SYNTHETIC, GOODBOOKS])
def test_every_change_is_valid_and_changes_something(scale, dataset):
    config = ExperimentSettings(scale, 1, Path("goodbooks")).config(dataset)
    for kinds in (KINDS, variants_of(scale)):
        configs = [config.replace_all(dict(kind.changes)) for kind in kinds.values()]
        assert configs[0] == config
        assert all(one != other for i, one in enumerate(configs) for other in configs[:i])
        titles = [kind.title for kind in kinds.values()]
        assert len(set(titles)) == len(titles)


def test_experiments_share_what_they_measure(tmp_path):
    """Steps are named by what decides them; a source that is no module would raise."""
    store, settings = Store(tmp_path), ExperimentSettings("full", 2)
    steps = {
        module: module.steps(settings) for module in (ablation, corpus_size, losses, recall_at)
    }
    names = {
        module: {place: store.name(step) for place, step in each.items()}
        for module, each in steps.items()
    }
    for each in names.values():
        assert len(set(each.values())) == len(each)
    default = names[losses]["synthetic/beta/1"]
    assert default == names[corpus_size]["synthetic/1/1"] == names[ablation]["synthetic/default/1"]
    assert names[losses]["synthetic/info/0"] == names[ablation]["synthetic/constant_tau/0"]
    assert names[losses]["synthetic/beta/0"] != default
    # Other averages, from the same towers and the same level_temperature.
    short = steps[recall_at]["synthetic/beta/1"]
    assert store.name(short) != default
    assert [store.name(need) for need in short.needs] == [
        store.name(need) for need in steps[losses]["synthetic/beta/1"].needs
    ]
