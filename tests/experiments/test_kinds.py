"""Kinds and variants of towers are valid everywhere."""

from pathlib import Path

import pytest

from experiments.ablation_variants import variants_of
from experiments.kinds import KINDS
from experiments.settings import GOODBOOKS, SCALES, SYNTHETIC, ExperimentSettings


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
