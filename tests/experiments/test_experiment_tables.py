"""Figures and tables by hand: ablation, corpus size, losses and recall at small k."""

import math

import pytest
from experiment_runs import SMALL, output

from experiments import ablation, corpus_size, losses, recall_at
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
from experiments.kinds import KINDS
from experiments.settings import GOODBOOKS, SYNTHETIC, ExperimentSettings
from pebr_tf.report.formats import DASH

AVERAGES, SHORT = (5, 15, 50), (2, 5, 10, 20)
TWO_SEEDS = ExperimentSettings("small", 2, None)
PROBED = [probe_name(probe, sample) for probe in PROBES for sample in SAMPLES]


def run(level, top_k=(0.1, 0.5), cdf=(0.3, 0.1), averages=AVERAGES):
    """A result that is the same at every average; (precision, recall) of each policy."""
    at = {"level": level, "top_k": top_k, "score": (0.05, 0.2), "oracle": (0.9, 0.95)}
    at |= {} if cdf is None else {"cdf": cdf}
    return output({policy: dict.fromkeys(averages, pair) for policy, pair in at.items()}, 0.6)


def ablation_cutoffs():
    at = {
        level_temperature_name(each): (0.3 - 0.1 * each, 0.4 + 0.1 * each)
        for each in LEVEL_TEMPERATURES
    }
    at |= {TUNED: (0.2, 0.55), HEAD: (0.2, 0.52), **dict.fromkeys(PROBED, (0.2, 0.551))}
    errors = {**dict.fromkeys(PROBED, 0.01), HEAD: 0.2}
    pairs = {policy: dict.fromkeys(AVERAGES, pair) for policy, pair in at.items()}
    return output(pairs, 0.6, error=errors, explained=errors)


def ablation_results(seeds):
    """The level's recall has a deviation of .01 * sqrt(2) in two variants and of 0 in the others.

    Pooled over four variants, the deviation of one training is .01, and so is the standard error
    of a difference of two means of two seeds.
    """
    outputs = {}
    for seed in range(seeds):
        way = 0.01 if seed else -0.01
        outputs[f"synthetic/default/{seed}"] = run((0.2, 0.5 + way))
        outputs[f"synthetic/constant_tau/{seed}"] = run((0.2, 0.519 + way), cdf=None)
        outputs[f"synthetic/one_way_unmasked/{seed}"] = run((0.25, 0.47))
        outputs[f"synthetic/log_q/{seed}"] = run((0.2, 0.50), top_k=(0.1, 0.6))
        outputs[f"synthetic/cutoffs/{seed}"] = ablation_cutoffs()
    return ablation.results(ExperimentSettings("small", seeds, None), outputs)


def test_ablation_has_differences_their_standard_error_and_bold_beyond_noise():
    results = ablation_results(2)
    found = results.figures["synthetic"]
    assert found["standard_error"]["level"]["5"]["recall"] == pytest.approx(0.01)
    assert found["standard_error"]["level"]["5"]["precision"] == 0
    change = found["less_default"]["one_way_unmasked"]["level"]["50"]["recall"]
    assert change["mean"] == pytest.approx(-0.03)
    assert change["seeds"] == pytest.approx([-0.02, -0.04])
    assert results.tables[0].rows == (
        ("default", ".200/.500", "", ".200/.500", ""),
        ("one temperature for all (InfoNCE)", *[".200/.519", ".000/+.019"] * 2),
        ("neither term nor mask", *[".250/.470", "**+.050**/**−.030**"] * 2),
        ("logQ correction", *[".200/.500", ".000/.000"] * 2),
    )
    assert results.tables[2].rows[1][1:] == (DASH,) * 4


def test_ablation_of_one_seed_has_no_estimate_of_noise():
    results = ablation_results(1)
    assert math.isnan(results.figures["synthetic"]["standard_error"]["level"]["5"]["recall"])
    assert not any("**" in cell for row in results.tables[0].rows for cell in row)
    assert not clear(1.0, math.nan)
    assert clear(-0.021, 0.01)
    assert not clear(-0.019, 0.01)


def test_gains_of_corpus_size_are_differences_on_the_same_towers():
    outputs = {}
    for seed, recall in enumerate((0.60, 0.64)):
        outputs[f"synthetic/1/{seed}"] = run((0.20, recall))
        outputs[f"synthetic/0.46/{seed}"] = run((0.15, 0.50), (0.10, 0.45))
        outputs[f"synthetic/0.23/{seed}"] = run((0.10, 0.40), (0.10, 0.42))
    results = corpus_size.results(TWO_SEEDS, outputs)
    cells = {row[0]: row[-1] for row in results.tables[1].rows}
    assert cells["100%: level, recall"] == "+.120 ± .028"
    assert cells["23%: level, recall"] == "−.020 ± .000"
    assert cells["46%: literal pEBR, recall"] == "−.350 ± .000"
    gain = results.figures["synthetic"]["1"]["gain_over_top_k"]["level"]["50"]["recall"]
    assert gain["seeds"] == pytest.approx([0.1, 0.14])
    assert "Recall is above top k's in 6, precision in 6 of 9 cases." in results.summary[0]


def test_the_best_loss_of_each_policy_is_bold_and_counted():
    """Recall of the level rises with the place of the loss; maximum likelihood finds nothing."""
    outputs = {}
    for place, kind in enumerate(KINDS):
        cdf = None if kind in ("info", "info_one", "pointwise") else (0.3, 0.1)
        for seed in range(2):
            each = run((0.2, 0.5 + 0.01 * place + 0.02 * seed), (0.1, 0.52), cdf)
            if kind == "mle":
                each = run((0.001, 0.002), (0.001, 0.002), (0.001, 0.002))
            outputs[f"synthetic/{kind}/{seed}"] = each
    results = losses.results(TWO_SEEDS, outputs)
    cells = {row[0]: row[1:] for row in results.tables[0].rows}
    assert cells["BetaNCE"] == ("**.200**/.510", "**.100/.520**", "**.050/.200**", "**.300/.100**")
    assert cells["Pointwise"] == ("**.200/.570**", "**.100/.520**", "**.050/.200**", DASH)
    # Recall above .52: from the third loss to the seventh.
    assert "on the towers of 5 of 8 losses" in results.summary[0]


def test_recall_at_small_k_by_hand():
    outputs = {}
    for seed in range(2):
        beta, short = (0.2, 0.5 + 0.2 * seed), (0.2, 0.5 + 0.1 * seed)
        outputs[f"synthetic/beta/{seed}"] = run(beta, (0.1, 0.4), averages=SHORT)
        outputs[f"synthetic/short/{seed}"] = run(short, (0.1, 0.4), None, SHORT)
        outputs[f"synthetic/info_one/{seed}"] = run((0.1, 0.5), (0.2, 0.6), None, SHORT)
    results = recall_at.results(TWO_SEEDS, outputs)
    cells = {row[0]: row[1] for row in results.tables[0].rows}
    assert cells["BetaNCE: level, T tuned at these k"] == ".200/.550"
    assert cells["BetaNCE: level"] == ".200/**.600**"
    assert cells["BetaNCE: literal pEBR"] == "**.300**/.100"
    assert cells["InfoNCE, query to item only: top k"] == ".200/**.600**"
    found = results.figures["synthetic"]
    assert found["beta"]["level_temperature"] == [0.6, 0.6]
    assert found["beta"]["policies"]["level"]["5"]["overall"]["recall"]["seeds"] == [0.5, 0.7]
    assert found["short"]["level"]["5"]["overall"]["recall"]["seeds"] == [0.5, 0.6]
    assert recall_at.averages_of(SMALL, SYNTHETIC) == SHORT
    assert recall_at.averages_of(ExperimentSettings("small"), GOODBOOKS) == (10, 20, 50, 100, 200)
