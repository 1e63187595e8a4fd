"""One change at a time: differences, what is beyond noise, and a small run."""

import math

import pytest
from experiment_runs import output

from experiments import ablation
from experiments.ablation_cutoffs import (
    HEAD,
    LEVEL_TEMPERATURES,
    PROBES,
    SAMPLES,
    TUNED,
    level_temperature_name,
    probe_name,
)
from experiments.ablation_tables import clear
from experiments.settings import Settings
from pebr_tf.report.formats import DASH

AVERAGES = (5, 15, 50)
PROBED = [probe_name(probe, sample) for probe in PROBES for sample in SAMPLES]


def towers(level, top_k=(0.1, 0.4), cdf=(0.3, 0.2)):
    at = {"level": level, "top_k": top_k, "score": (0.1, 0.1), "oracle": (0.9, 0.9)}
    at |= {} if cdf is None else {"cdf": cdf}
    return output({policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()})


def cutoffs(level_temperature):
    at = {
        level_temperature_name(each): (0.3 - 0.1 * each, 0.4 + 0.1 * each)
        for each in LEVEL_TEMPERATURES
    }
    at |= {TUNED: (0.2, 0.55), HEAD: (0.2, 0.52), **dict.fromkeys(PROBED, (0.2, 0.551))}
    told = {"error": {**dict.fromkeys(PROBED, 0.01), HEAD: 0.2}}
    told["explained"] = {**dict.fromkeys(PROBED, 1.0), HEAD: 0.95}
    return output(
        {policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()},
        level_temperature,
        **told,
    )


def outputs_of(seeds):
    """The level's recall has a deviation of .01 * sqrt(2) in two variants and of 0 in the others.

    Pooled over four variants, that of one training is .01, and the standard error of a
    difference of two means of two seeds is .01, too.
    """
    outputs = {}
    for seed in range(seeds):
        way = 0.01 if seed else -0.01
        outputs[f"synthetic/default/{seed}"] = towers((0.2, 0.5 + way))
        outputs[f"synthetic/constant_tau/{seed}"] = towers((0.2, 0.519 + way), cdf=None)
        outputs[f"synthetic/one_way_unmasked/{seed}"] = towers((0.25, 0.47))
        outputs[f"synthetic/log_q/{seed}"] = towers((0.2, 0.50), top_k=(0.1, 0.6))
        outputs[f"synthetic/cutoffs/{seed}"] = cutoffs(0.6 if seed else 0.8)
    return outputs


@pytest.fixture(scope="module")
def results():
    return ablation.results(Settings("small", 2, None), outputs_of(2))


def test_differences_and_their_standard_error(results):
    found = results.figures["synthetic"]
    assert found["standard_error"]["level"]["5"]["recall"] == pytest.approx(0.01)
    assert found["standard_error"]["level"]["5"]["precision"] == 0
    change = found["less_default"]["one_way_unmasked"]["level"]["50"]["recall"]
    assert change["mean"] == pytest.approx(-0.03)
    assert change["seeds"] == pytest.approx([-0.02, -0.04])
    assert set(found["less_default"]["constant_tau"]) == {"level", "top_k"}


def test_changes_beyond_noise_are_bold(results):
    level, top_k, cdf = results.tables[:3]
    assert level.head == ("P/R", "k = 5", "change", "k = 50", "change")
    assert level.rows == (
        ("default", ".200/.500", "", ".200/.500", ""),
        ("one temperature for all (InfoNCE)", *[".200/.519", ".000/+.019"] * 2),
        ("neither term nor mask", *[".250/.470", "**+.050**/**−.030**"] * 2),
        ("logQ correction", *[".200/.500", ".000/.000"] * 2),
    )
    assert top_k.rows[3][1:3] == (".100/.600", ".000/**+.200**")
    assert cdf.rows[1][1:] == (DASH,) * 4
    assert cdf.rows[2][2] == ".000/.000"


def test_one_seed_knows_no_noise():
    results = ablation.results(Settings("small", 1, None), outputs_of(1))
    assert math.isnan(results.figures["synthetic"]["standard_error"]["level"]["5"]["recall"])
    assert not any("**" in cell for row in results.tables[0].rows for cell in row)
    assert "beyond" not in results.summary[0]
    assert not clear(1.0, math.nan)
    assert clear(-0.021, 0.01)
    assert not clear(-0.019, 0.01)
