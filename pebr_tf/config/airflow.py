"""Settings of runs on Airflow, beside those of `cloud` and `kubeflow`."""

from dataclasses import dataclass

from pebr_tf.config.kubeflow import kubernetes_name
from pebr_tf.config.section import Section


@dataclass(frozen=True)
class Airflow(Section):
    """Tasks run on Airflow's workers, or in pods; these use image, resources and `kubeflow`."""

    volume_claim: str | None = kubernetes_name(
        "Persistent volume claim that pods mount at /data; null: no pods"
    )
