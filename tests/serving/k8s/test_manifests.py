"""The manifests are valid and agree with each other and with the code."""

import json
import re
import shutil
import subprocess

import kubernetes_validate
import pytest
import yaml
from google.protobuf import text_format
from kustomized import FOLDER, VARIANTS, documents, images
from tensorflow_serving.config import model_server_config_pb2

from pebr_tf.config import Config, Serving
from serving.cli.serve import serve

# The first Kubernetes with sidecars on by default, and the newest with a known schema.
VERSIONS = ("1.29.0", kubernetes_validate.latest_version())


@pytest.fixture(params=VARIANTS)
def variant(request):
    return request.param


@pytest.fixture
def found(variant):
    return documents(variant)


def pod(found):
    return found["Deployment"]["spec"]["template"]["spec"]


def containers(found):
    """Name -> container, sidecars as well."""
    every = [*pod(found).get("initContainers", []), *pod(found)["containers"]]
    return {each["name"]: each for each in every}


def settings(found):
    return Config.from_yaml(found["ConfigMap"]["data"]["pebr.yaml"]).serving


def test_all_fields_are_valid(found):
    for kind, document in found.items():
        # The validator has no schema of monitoring.coreos.com/v1.
        for version in VERSIONS if kind != "ServiceMonitor" else ():
            kubernetes_validate.validate(document, version, strict=True)


def test_rendered_as_kustomize_renders_it(variant, found):
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")
    rendered = subprocess.run(
        ["kubectl", "kustomize", str(FOLDER / variant)], capture_output=True, text=True, check=True
    ).stdout
    # kustomize adds a hash to the name of the configuration, and tags to images.
    rendered = re.sub(r"(name: pebr-retrieval)-[a-z0-9]{10}\b", r"\1", rendered)
    theirs = {each["kind"]: each for each in yaml.safe_load_all(rendered)}
    for container in containers(found).values():
        container["image"] = images(variant)[container["image"]]
        assert re.fullmatch(r"pebr-[a-z-]+:\d\S*", container["image"])
    for kind in theirs.keys() | found.keys():
        assert _unordered(theirs[kind]) == _unordered(found[kind]), kind


def _unordered(value):
    """The same with sorted lists, because merges order them differently."""
    if isinstance(value, dict):
        return {name: _unordered(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted(map(_unordered, value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def test_selectors_match_the_pods(found):
    labels = found["Deployment"]["spec"]["template"]["metadata"]["labels"]
    selectors = [
        found["Deployment"]["spec"]["selector"]["matchLabels"],
        found["Service"]["spec"]["selector"],
        found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        found["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"],
        pod(found)["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ]
    for selector in selectors:
        assert selector
        assert selector.items() <= labels.items()
    monitored = found["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    assert monitored.items() <= found["Service"]["metadata"]["labels"].items()


def test_names_refer_to_existing_objects(found):
    target = found["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]
    deployment = found["Deployment"]
    assert (target["kind"], target["name"]) == ("Deployment", deployment["metadata"]["name"])
    assert pod(found)["serviceAccountName"] == found["ServiceAccount"]["metadata"]["name"]
    volumes = {each["name"]: each for each in pod(found)["volumes"]}
    claim = volumes["releases"]["persistentVolumeClaim"]["claimName"]
    assert claim == found["PersistentVolumeClaim"]["metadata"]["name"]
    assert volumes["config"]["configMap"]["name"] == found["ConfigMap"]["metadata"]["name"]
    for container in containers(found).values():
        assert {each["name"] for each in container["volumeMounts"]} <= set(volumes)


def test_ports_are_those_of_the_configuration(found):
    ports = {
        each["name"]: each["containerPort"] for each in containers(found)["retrieval"]["ports"]
    }
    assert ports == {"grpc": settings(found).grpc_port, "http": settings(found).http_port}
    assert (ports["grpc"], ports["http"]) == (Serving().grpc_port, Serving().http_port)
    named = {
        each["name"]: each["containerPort"]
        for container in containers(found).values()
        for each in container["ports"]
    }
    for each in found["Service"]["spec"]["ports"]:
        assert each["port"] == named[each["targetPort"]]
    for endpoint in found["ServiceMonitor"]["spec"]["endpoints"]:
        assert endpoint["port"] in [each["name"] for each in found["Service"]["spec"]["ports"]]
    for rule in found["NetworkPolicy"]["spec"]["ingress"]:
        assert {each["port"] for each in rule["ports"]} <= set(named)
    assert settings(found).host == "0.0.0.0"


def test_the_command_has_options_that_exist(found):
    container = containers(found)["retrieval"]
    subcommand, *arguments = container["args"]
    assert subcommand == serve.name
    options = {name for each in serve.params for name in each.opts}
    assert {each for each in arguments if each.startswith("--")} <= options
    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    mounts = {each["mountPath"]: each for each in container["volumeMounts"]}
    assert mounts[given["--releases"]]["readOnly"]
    folder, _, name = given["--config"].rpartition("/")
    assert mounts[folder]["name"] == "config"
    assert name in found["ConfigMap"]["data"]


def test_probes_ask_for_paths_that_exist(found):
    source = (FOLDER.parent / "service" / "http_api.py").read_text()
    served = set(re.findall(r'"(/[a-z]+)"', source))
    container = containers(found)["retrieval"]
    probes = ("startupProbe", "readinessProbe", "livenessProbe")
    paths = [container[name]["httpGet"]["path"] for name in probes]
    assert paths == ["/readyz", "/readyz", "/healthz"]
    assert {*paths, found["ServiceMonitor"]["spec"]["endpoints"][0]["path"]} <= served


def test_pods_have_time_to_drain(found):
    pause = containers(found)["retrieval"]["lifecycle"]["preStop"]["exec"]["command"]
    assert pause[0] == "sleep"
    needed = int(pause[1]) + settings(found).drain_seconds
    assert pod(found)["terminationGracePeriodSeconds"] > needed + 5
    # Load balancers must notice before the service rejects requests.
    readiness = containers(found)["retrieval"]["readinessProbe"]
    assert int(pause[1]) >= readiness["periodSeconds"]
    replicas = found["HorizontalPodAutoscaler"]["spec"]["minReplicas"]
    assert replicas > found["PodDisruptionBudget"]["spec"]["maxUnavailable"]


def test_nothing_is_privileged(found):
    assert pod(found)["securityContext"]["runAsNonRoot"]
    assert pod(found)["securityContext"]["runAsUser"] > 0
    assert pod(found)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not pod(found)["automountServiceAccountToken"]
    for container in containers(found).values():
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= set(container["resources"]["requests"])
        assert "memory" in container["resources"]["limits"]
        for mount in container["volumeMounts"]:
            assert mount["name"] == "scratch" or mount["readOnly"]


def test_the_sidecar_is_the_backend_and_fits_its_image():
    assert set(containers(documents("base"))) == {"retrieval"}
    found = documents("tf-serving")
    sidecar = containers(found)["tf-serving"]
    assert sidecar["restartPolicy"] == "Always"
    assert settings(found).backend == "tf_serving"
    ports = {each["name"]: each["containerPort"] for each in sidecar["ports"]}
    assert settings(found).tf_serving.address == f"127.0.0.1:{ports['tf-serving-grpc']}"
    model = settings(found).tf_serving.model
    assert sidecar["startupProbe"]["httpGet"]["path"] == f"/v1/models/{model}"
    folder = FOLDER.parent / "tf_serving"
    dockerfile = (folder / "Dockerfile.query_model").read_text()
    for port in sidecar["ports"]:
        assert re.search(rf"--(port|rest_api_port)={port['containerPort']}\b", dockerfile)
    config = text_format.Parse(
        (folder / "models.config").read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (model,) = config.model_config_list.config
    (mount,) = sidecar["volumeMounts"]
    assert model.base_path.startswith(f"{mount['mountPath']}/")
    batching = (folder / "batching_parameters.txt").read_text()
    threads = re.search(r"^num_batch_threads { value: (\d+) }", batching, re.MULTILINE).group(1)
    assert sidecar["resources"]["requests"]["cpu"] == threads
    monitoring = (folder / "monitoring.config").read_text()
    endpoint = found["ServiceMonitor"]["spec"]["endpoints"][1]
    assert f'path: "{endpoint["path"]}"' in monitoring
