"""Every setting at the edges of what it accepts."""

import math
from typing import Any, get_args, get_origin

import pytest
import yaml
from text_tables import blocks

from pebr_tf.config import Config, ConfigError
from pebr_tf.config.section import leaves
from pebr_tf.config.setting import split_null

LEAVES = dict(leaves(Config))
DIGEST = "0f" * 32


def kind_of(key):
    kind, _ = split_null(key.hint)
    return get_args(kind)[0] if get_origin(kind) is tuple else kind


NUMBERS = {path: key for path, key in LEAVES.items() if kind_of(key) in (int, float)}


def wrapped(key, value):
    return [value] if get_origin(key.hint) is tuple else value


def step(key, bound, towards):
    """The next number that the type of `key` can hold."""
    if kind_of(key) is int:
        return bound + (1 if towards > bound else -1)
    return math.nextafter(bound, towards)


def test_numbers_are_accepted_up_to_their_bounds():
    for path, key in NUMBERS.items():
        bounds = key.rule.bounds
        assert bounds is not None, path
        low = bounds.low if bounds.has_low else step(key, bounds.low, math.inf)
        high = bounds.high if bounds.has_high else step(key, bounds.high, -math.inf)
        for inside in (low, high):
            assert key.accept(wrapped(key, inside)) in (inside, (inside,)), path
        beyond = (step(key, low, -math.inf), step(key, high, math.inf))
        for outside in (*beyond, math.nan, math.inf, -math.inf):
            with pytest.raises(ConfigError, match=r" must be .*(integer|number).* Received: "):
                key.accept(wrapped(key, outside))


def test_values_of_another_type_are_rejected():
    wrong_entries: dict[Any, list[Any]] = {
        bool: [0, 1, "true", "yes", 1.0],
        int: [True, "3", 1.5, 3.0, b"3"],
        float: [True, "0.5", b"1"],
        str: [True, 3, 0.5, "", "  ", b"text"],
    }
    for key in LEAVES.values():
        entries = wrong_entries.get(kind_of(key), [True, 3, "", "no such choice"])
        wrong = [wrapped(key, entry) for entry in [*entries, {}, [], object()]]
        if get_origin(key.hint) is tuple:
            wrong += [{}, object(), "title", 3, [None]]
        if not split_null(key.hint)[1]:
            wrong.append(None)
        for value in wrong:
            with pytest.raises(ConfigError, match=r" must be .* Received: "):
                key.accept(value)


# Written by hand, so that a slip in the definitions cannot hide in a test derived from them.
# path: accepted, rejected, and other settings that the case needs.
BOUNDS = f"""\
data.reject_limit: [0, 0.01, 1], [-0.001, 1.001]
data.statistics_rows: [100, 10_000_000], [99, 10_000_001]
split.calibrate: [0.001, 0.89], [0, 1, -0.1]
split.test: [0.001, 0.89], [0, 1]
split.seed: [0, 2_147_483_647], [-1, 2_147_483_648]
strata.head: [0.5], [0, 1]
features.word_ngrams: [[], [1], [1, 5]], [[0], [6], [2, 1], [1, 1]]
features.character_ngrams: [[], [1, 8]], [[0], [9], [3, 2]]
features.vocabulary_size: [1, 100_000_000], [0, 100_000_001]
features.oov_buckets: [1, 10_000_000], [0, 10_000_001]
features.item_text: [[a], [a, b]], [[a, a], [""]]
towers.dimension: [2, 128, 4096], [1, 0, -128, 4097]
towers.hidden_layers: [[], [1], [65_536, 65_536]], [[0], [65_537]]
towers.dropout: [0, 0.999], [-0.001, 1]
towers.tau_initial: [0.0021, 0.999], [0.0019, 1.001]
towers.tau_min: [0.002, 0.049], [0.0019]
towers.tau_max: [0.051, 1], [1.001]
loss.symmetric_weight: [0, 100], [-0.1, 100.1]
loss.gamma: [0, 0.5, 1], [-0.1, 1.1]
loss.delta_beta: [-0.999, 100], [-1, 100.1]
loss.coverage_recall: [[0.001], [0.5, 0.999]], [[], [0], [1], [0.9, 0.5]]
training.batch_size: [2, 1_048_576], [1, 0, 1_048_577]
training.learning_rate: [null, 1.0e-9, 10], [0, -0.003, 10.1]
training.steps: [1, 1_000_000_000], [0]
training.early_stop_patience: [null, 1, 1000], [0, 1001]
cutoff.level_temperature: [null, 0, 0.6, 10], [-0.1, 10.1]
cutoff.probe_size: [1, 100_000], [0, 100_001]
cutoff.background_sample: [1, 1_000_000], [0, 1_000_001]
cutoff.default_value: [0.001, 0.999], [0, 1, -2]
cutoff.default_value: [1, 10_000], [0.5, 10_001], {{cutoff.default_knob: budget}}
cutoff.default_value: [1, 10_000], [0, 2.5, 10_001], {{cutoff.default_knob: top_k}}
cutoff.default_value: [-1, 1], [-1.001, 1.001], {{cutoff.default_knob: score}}
cutoff.floor: [0, 1, 10_000], [-1, 10_001]
cutoff.limit: [500, 1_000_000], [0, 1_000_001]
index.recall_target: [0.98, 0.9999], [0, 1]
index.exact_below: [0, 100_000_000], [-1, 100_000_001]
index.leaves: [null, 1, 1_000_000], [0, 1_000_001]
index.dimensions_per_block: [1, 16], [0, 17]
evaluation.average_k: [[1], [1, 10_000]], [[], [0], [5, 5], [9, 5]]
evaluation.gates.min_precision_lift: [-1, 10], [-1.1, 10.1]
evaluation.gates.min_recall_lift: [-1, 10], [-1.1, 10.1]
evaluation.gates.min_baseline_recall_lift: [null, -1, 10], [-1.1, 10.1]
evaluation.gates.max_calibration_error: [0, 1], [-0.1, 1.1]
evaluation.gates.min_index_recall: [0, 0.99], [-0.1, 1.1]
evaluation.gates.max_empty_rate: [0, 1], [-0.1, 1.1]
evaluation.gates.max_p99_milliseconds: [null, 0.1, 600_000], [0, 600_001]
serving.grpc_port: [0, 65_535], [-1, 65_536]
serving.batching.max_size: [1, 1024], [0, 1025]
serving.batching.queue_limit: [256, 1_000_000], [0, 63, 1_000_001]
serving.limits.queries_per_call: [1, 1024], [0, 1025]
serving.limits.request_bytes: [1024, 1_073_741_824], [1023, 1_073_741_825]
serving.tf_serving.retries: [0, 10], [-1, 11]
serving.tf_serving.address:
    [null, localhost:8500, "10.0.0.1:1", "[::1]:8500"],
    [localhost, ":8500", "localhost:", http://localhost:8500, "a b:1", "::1:8500"]
cloud.project:
    [null, shop-search, example.com:shop-search, a12345],
    [Shop, shop, shop-, "-shop-search", shop_search, aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]
cloud.region: [null, europe-west4], [europe, EU-west4, us-central]
cloud.image:
    [pebr:1, host:5000/team/pebr:1.2-gpu, a/b@sha256:{DIGEST}, a/pebr:1@sha256:{DIGEST}],
    [pebr, host:5000/pebr, "a/b/pebr:", "pebr:1 2", pebr@sha256:0, ":1", a/b:1/c]
cloud.service_account:
    [null, pebr@shop-search.iam.gserviceaccount.com],
    [pebr, pebr@shop, "@shop.com", "a b@shop.com"]
cloud.retries: [0, 10], [-1, 11]
cloud.dataflow.machine_type: [e2-standard-4], [e2, E2-standard-4]
cloud.training_job.workers: [1, 1000], [0, 1001], {{training.strategy: multi_worker}}
cloud.resources.trainer:
    ["1 cpu, 1 GB", "96 cpu, 624 GB, 8 NVIDIA_L4"],
    ["4 cpu", "0 cpu, 1 GB", "4, 16", "4 cpu, 16 GB, 1 TPU_V3", "4 cpu, 16 GB, NVIDIA_L4"]
"""


@pytest.mark.parametrize("case", blocks(BOUNDS))
def test_bounds_written_by_hand(case):
    path, values = case.split(":", maxsplit=1)
    accepted, rejected, *others = yaml.safe_load(f"[{values}]")
    others = others[0] if others else {}
    for value in accepted:
        stored = Config().replace_all({**others, path: value}).value_at(path)
        assert (list(stored) if isinstance(stored, tuple) else stored) == value
    for value in rejected:
        with pytest.raises(ConfigError, match=r" must .* Received: "):
            Config().replace_all({**others, path: value})
