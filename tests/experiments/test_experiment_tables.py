"""The figures and the first table of the ablation by hand."""

import math
from pathlib import Path

import pytest
from experiment_runs import output

from experiments import ablation, seeds
from experiments import ablation_cutoffs as cut
from experiments.ablation_variants import variants_of
from experiments.kinds import KINDS
from experiments.settings import GOODBOOKS, SCALES, SYNTHETIC, ExperimentSettings
from pebr_tf.report.formats import DASH

AVERAGES = (5, 15, 50)
TWO_SEEDS = ExperimentSettings("small", 2, None)
PROBED = [cut.probe_name(probe, sample) for probe in cut.PROBES for sample in cut.SAMPLES]


def test_one_seed_has_no_deviation():
    assert seeds.spread([1.0, 2.0, 3.0]) == {"mean": 2.0, "deviation": 1.0, "seeds": [1, 2, 3]}
    assert math.isnan(seeds.spread([0.5])["deviation"])


def run(level, top_k=(0.1, 0.5), cdf=(0.3, 0.1)):
    """A result that is the same at every average; (precision, recall) of each policy."""
    at = {"level": level, "top_k": top_k, "score": (0.05, 0.2), "oracle": (0.9, 0.95)}
    at |= {} if cdf is None else {"cdf": cdf}
    return output({policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()}, 0.6)


def ablation_cutoffs():
    at = {
        cut.level_temperature_name(t): (0.3 - 0.1 * t, 0.4 + 0.1 * t)
        for t in cut.LEVEL_TEMPERATURES
    }
    at |= {cut.TUNED: (0.2, 0.55), cut.SAMPLE: (0.2, 0.52), **dict.fromkeys(PROBED, (0.2, 0.551))}
    errors = {**dict.fromkeys(PROBED, 0.01), cut.SAMPLE: 0.2}
    pairs = {policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()}
    return output(pairs, 0.6, error=errors, explained=errors)


def ablation_results():
    """The level's recall has a deviation of .01 * sqrt(2) in two variants and of 0 in the others.

    Pooled over four variants, the deviation of one training is .01, and so is the standard error
    of a difference of two means of two seeds.
    """
    outputs = {}
    for seed in range(2):
        way = 0.01 if seed else -0.01
        outputs[f"synthetic/default/{seed}"] = run((0.2, 0.5 + way))
        outputs[f"synthetic/constant_tau/{seed}"] = run((0.2, 0.519 + way), cdf=None)
        outputs[f"synthetic/one_way_unmasked/{seed}"] = run((0.25, 0.47))
        outputs[f"synthetic/log_q/{seed}"] = run((0.2, 0.50), top_k=(0.1, 0.6))
        outputs[f"synthetic/cutoffs/{seed}"] = ablation_cutoffs()
    return ablation.results(TWO_SEEDS, outputs)


def test_ablation_has_differences_their_standard_error_and_bold_beyond_noise():
    results = ablation_results()
    found = results.figures["synthetic"]
    assert found["standard_error"]["level"]["5"]["recall"] == pytest.approx(0.01)
    assert found["standard_error"]["level"]["5"]["precision"] == 0
    change = found["less_default"]["one_way_unmasked"]["level"]["50"]["recall"]
    assert change["mean"] == pytest.approx(-0.03)
    assert change["seeds"] == pytest.approx([-0.02, -0.04])
    assert results.tables[0].rows == (
        ("default", ".200/.500", "", ".200/.500", ""),
        ("one temperature for all (InfoNCE)", *[".200/.519", ".000/+.0190"] * 2),
        ("neither term nor mask", *[".250/.470", "**+.0500**/**−.0300**"] * 2),
        ("logQ correction", *[".200/.500", ".000/.000"] * 2),
    )
    assert results.tables[2].rows[1][1:] == (DASH,) * 4


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
