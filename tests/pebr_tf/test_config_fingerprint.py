"""The fingerprint: equal for equal configurations, different for any change."""

from typing import Any, Literal, get_args, get_origin

from pebr_tf.config import Config
from pebr_tf.config.section import Key, leaves

LEAVES = dict(leaves(Config))
MUTUAL_TLS = {
    "serving.tls.certificate": "server.pem",
    "serving.tls.key": "server.key",
    "serving.tls.mutual": True,
    "serving.tls.client_authority": "clients.pem",
}
# Settings whose neighbouring value contradicts another: what to set first, what to change to.
CHOSEN: dict[str, tuple[dict[str, Any], Any]] = {
    "loss.family": ({}, "exp_nce"),
    "loss.learn_temperature": ({"loss.family": "info_nce"}, True),
    "towers.tau_min": ({}, 0.003),
    "cutoff.default_knob": ({}, "score"),
    "index.recall_target": ({}, 0.995),
    "serving.grpc_port": ({}, 9000),
    "serving.backend": ({"serving.tf_serving.address": "host:1"}, "tf_serving"),
    "serving.tf_serving.address": ({}, "host:1"),
    "cloud.project": ({}, "shop-search"),
    "cloud.region": ({}, "europe-west4"),
    "cloud.image": ({}, "pebr:2"),
    "cloud.service_account": ({}, "pebr@shop.iam.gserviceaccount.com"),
    "cloud.dataflow.machine_type": ({}, "n2-highmem-8"),
    "cloud.training_job.workers": ({"training.strategy": "multi_worker"}, 2),
    **{
        f"cloud.resources.{name}": ({}, "2 cpu, 8 GB, 1 NVIDIA_L4")
        for name in Config().cloud.resources.to_mapping()
    },
    "serving.tls.certificate": (MUTUAL_TLS, "other.pem"),
    "serving.tls.key": (MUTUAL_TLS, "other.pem"),
    "serving.tls.client_authority": (MUTUAL_TLS, "other.pem"),
}
# Settings that cannot change alone.
JOINT: dict[str, dict[str, Any]] = {
    "strata.head": {"strata.head": 0.3, "strata.torso": 0.5},
    "strata.torso": {"strata.torso": 0.2, "strata.tail": 0.3},
    "strata.tail": {"strata.tail": 0.5, "strata.head": 0.2},
    "serving.tls.mutual": MUTUAL_TLS,
}


def neighbour(key: Key, value: Any) -> Any:
    """Another value that the setting accepts."""
    if get_origin(key.hint) is Literal:
        return next(choice for choice in get_args(key.hint) if choice != value)
    if get_origin(key.hint) is tuple:
        largest = min(1_000, int(key.rule.bounds.high if key.rule.bounds else 1_000))
        entry = {str: "brand", int: largest, float: 0.95}[get_args(key.hint)[0]]
        return value[:-1] if len(value) > 1 else (*value, entry)
    if value is None:
        return "x" if key.hint == str | None else 1
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    return value + 1 if isinstance(value, int) else value / 2 or 0.5


def test_each_setting_changes_it() -> None:
    for path in sorted(set(LEAVES) - set(JOINT)):
        base, value = CHOSEN.get(path, ({}, None))
        config = Config().replace_all(base)
        if path not in CHOSEN:
            value = neighbour(LEAVES[path], config.value_at(path))
        assert config.replace(path, value).fingerprint() != config.fingerprint(), path
    for changes in JOINT.values():
        assert Config().replace_all(changes).fingerprint() != Config().fingerprint()


def test_key_order_does_not_matter() -> None:
    mapping = Config().to_mapping()
    backwards = {
        name: dict(reversed(section.items())) for name, section in reversed(mapping.items())
    }
    assert list(backwards) != list(mapping)
    assert Config.from_mapping(backwards).fingerprint() == Config().fingerprint()


def test_a_section_has_its_own() -> None:
    changed = Config().replace("serving.http_port", 9000)
    assert changed.training.fingerprint() == Config().training.fingerprint()
    assert changed.serving.fingerprint() != Config().serving.fingerprint()
