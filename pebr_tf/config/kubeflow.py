"""Settings of runs on open-source Kubeflow Pipelines, beside those of `cloud`."""

from dataclasses import dataclass
from typing import Any

from pebr_tf.config.section import Section
from pebr_tf.config.setting import setting


def kubernetes_name(doc: str) -> Any:
    """A key that is null or a name in Kubernetes."""
    return setting(
        None,
        doc,
        pattern=r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?",
        form="a name in Kubernetes: lower-case letters, digits, hyphens and dots",
    )


def _labels(doc: str) -> Any:
    return setting(
        (), doc, pattern=r"[^\s=]+=[^\s=]+", form="a label, such as pool=batch", distinct=True
    )


@dataclass(frozen=True)
class Kubeflow(Section):
    """Runs on Kubeflow Pipelines; image, retries, cache and resources are those of `cloud`."""

    host: str | None = setting(
        None,
        "Address of its API, such as https://kubeflow.example.org/pipeline; --host wins",
        pattern=r"https?://[^\s/]+(/\S*)?",
        form="an address that begins with http:// or https://",
    )
    namespace: str | None = kubernetes_name(
        "Namespace of the runs; null: an installation without users"
    )
    service_account: str | None = kubernetes_name(
        "Service account of the pods; null: Kubeflow's default"
    )
    secret: str | None = kubernetes_name(
        "Secret with the keys accesskey and secretkey for s3:// and minio:// paths; null: none"
    )
    environment: tuple[str, ...] = setting(
        (),
        "Variables of every pod, such as AWS_ENDPOINT_URL=http://minio-service.kubeflow:9000",
        pattern=r"[A-Za-z_][A-Za-z0-9_]*=.*",
        form="a variable, such as AWS_REGION=eu-central-1",
    )
    node_selector: tuple[str, ...] = _labels("Labels of the nodes that pods run on")
    accelerator_selector: tuple[str, ...] = _labels(
        "Further labels for pods that request an accelerator"
    )
