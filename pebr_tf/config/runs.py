"""Settings of runs: their folders, and who, where and on which machines in the cloud."""

from dataclasses import dataclass
from typing import Any

from pebr_tf.config.section import Section
from pebr_tf.config.setting import setting


class Pipeline(Section):
    """Name, folders and Beam arguments of a run."""

    name: str = setting(
        "pebr",
        "Name in the metadata",
        pattern=r"[a-z][a-z0-9-]{0,62}",
        form="lower-case letters, digits and hyphens, a letter first",
    )
    root: str = setting("run", "Folder of artifacts, metadata and checkpoints")
    releases: str = setting(
        "releases",
        "Folder of pushed releases, one subfolder per version; may be gs://..., s3://...",
    )
    metadata: str | None = setting(
        None,
        "MySQL server of the metadata of `pebr run`; null: a SQLite file in root",
        # Not PostgreSQL, which ml-metadata 1.16 has not been tried with.
        pattern=r"mysql://[^\s:@/]+@[^\s:@/]+(:[0-9]{1,5})?/[^\s:@/?]+",
        form="a MySQL database without a password, such as mysql://user@host:3306/pebr",
    )
    beam_args: tuple[str, ...] = setting(
        (), "Passed to Beam: runner, project, workers; []: in this process"
    )


# What Vertex AI can attach to a container, by its own names; the towers do not train on TPUs.
# Kubernetes has names with a slash.
ACCELERATORS = (
    "NVIDIA_TESLA_K80",
    "NVIDIA_TESLA_P100",
    "NVIDIA_TESLA_V100",
    "NVIDIA_TESLA_P4",
    "NVIDIA_TESLA_T4",
    "NVIDIA_TESLA_A100",
    "NVIDIA_A100_80GB",
    "NVIDIA_L4",
    "NVIDIA_H100_80GB",
    "NVIDIA_H100_MEGA_80GB",
    "NVIDIA_H200_141GB",
    "NVIDIA_B200",
    "NVIDIA_GB200",
    "NVIDIA_RTX_PRO_6000",
)
_ACCELERATOR = r"[A-Z][A-Z0-9_]*|[a-z0-9.-]+/[A-Za-z0-9._-]+"
_MACHINE = {
    "pattern": r"[a-z][a-z0-9]*(-[a-z0-9]+)+",
    "form": "a machine type, such as e2-standard-4",
}


@dataclass(frozen=True)
class Machine:
    """What the container of a component gets; `accelerators` is their number, 0 without."""

    cpu: int
    memory_gb: int
    accelerator: str | None = None
    accelerators: int = 0

    @classmethod
    def of(cls, text: str) -> "Machine":
        """The machine that a setting such as `16 cpu, 64 GB, 1 NVIDIA_L4` describes."""
        cpu, memory, *attached = (part.split() for part in text.split(","))
        if not attached:
            return cls(int(cpu[0]), int(memory[0]))
        ((count, name),) = attached
        return cls(int(cpu[0]), int(memory[0]), name, int(count))


def _machine(doc: str) -> Any:
    return setting(
        "4 cpu, 16 GB",
        doc,
        pattern=rf"[1-9][0-9]{{0,3}} cpu, [1-9][0-9]{{0,4}} GB(, [1-9][0-9]? ({_ACCELERATOR}))?",
        form="a text such as '4 cpu, 16 GB' or '16 cpu, 64 GB, 1 NVIDIA_L4'",
    )


class Resources(Section):
    """What each component's container gets, such as 16 cpu, 64 GB, 1 NVIDIA_L4."""

    click_log_example_gen: str = _machine("Reads and splits the clicks; larger if Dataflow is off")
    statistics_gen: str = _machine("Counts columns; larger if Dataflow is off")
    schema_gen: str = _machine("Takes seconds")
    example_validator: str = _machine("Takes seconds")
    transform: str = _machine("Vocabularies; larger if Dataflow is off")
    trainer: str = _machine("Trains; an accelerator needs the image with CUDA")
    index_builder: str = _machine("Holds all item vectors several times over")
    cutoff_calibrator: str = _machine("Compares held-out queries with all items")
    retrieval_evaluator: str = _machine("Compares held-out queries with all items")
    pusher: str = _machine("Holds the index once")

    def check(self) -> None:
        for name in self.to_mapping():
            accelerator = Machine.of(getattr(self, name)).accelerator
            self.require(
                accelerator is None or "/" in accelerator or accelerator in ACCELERATORS,
                name,
                f"name one of the accelerators {', '.join(ACCELERATORS)}, "
                "or a resource of Kubernetes, such as nvidia.com/gpu",
            )


class Dataflow(Section):
    """Whether Beam's part of the components runs on Dataflow, and how large."""

    enabled: bool = setting(False, "false: Beam runs in each component's own container")
    machine_type: str = setting("e2-standard-4", "Machine type of a worker", **_MACHINE)
    max_workers: int = setting(10, "Most workers", "[1, 4_000]")
    disk_gb: int = setting(50, "Disk of a worker", "[10, 65_536]")
    subnetwork: str | None = setting(None, "Subnetwork of the workers; null: the default network")
    public_ips: bool = setting(True, "false: workers have private addresses only")


class TrainingJob(Section):
    """Several workers for one training: a CustomJob that the Trainer starts and waits for."""

    workers: int = setting(1, "1: the Trainer's own container trains", "[1, 1_000]")
    machine_type: str = setting("n1-standard-16", "Machine type of a worker", **_MACHINE)


class Cloud(Section):
    """Runs on Vertex AI; Kubeflow uses image, retries, cache and resources, `pebr run` nothing."""

    project: str | None = setting(
        None,
        "Google Cloud project to bill",
        pattern=r"([a-z0-9.-]+:)?[a-z][a-z0-9-]{4,28}[a-z0-9]",
        form="the id of a project",
    )
    region: str | None = setting(
        None,
        "Such as europe-west4",
        pattern=r"[a-z]+(-[a-z]+)+[0-9]+",
        form="a region, such as europe-west4",
    )
    image: str | None = setting(
        None,
        "Image built from pipeline/Dockerfile, with a tag or a digest",
        pattern=r"([^\s:/@]+(:[0-9]+)?/)?[^\s:@]+(:[\w.-]+(@sha256:[0-9a-f]{64})?|@sha256:[0-9a-f]{64})",
        form="an image with a tag or a digest, such as pebr:1",
    )
    service_account: str | None = setting(
        None,
        "Service account of the components; null: the project's default",
        pattern=r"[^\s@]+@[^\s@]+\.[^\s@]+",
        form="the e-mail address of a service account",
    )
    network: str | None = setting(None, "VPC network to peer with; null: none")
    retries: int = setting(2, "Retries of each failed component", "[0, 10]")
    cache: bool = setting(True, "Reuse results of earlier runs where nothing has changed")
    dataflow: Dataflow = Dataflow()
    training_job: TrainingJob = TrainingJob()
    resources: Resources = Resources()


def _name(doc: str) -> Any:
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


class Kubeflow(Section):
    """Runs on Kubeflow Pipelines; image, retries, cache and resources are those of `cloud`."""

    host: str | None = setting(
        None,
        "Address of its API, such as https://kubeflow.example.org/pipeline; --host wins",
        pattern=r"https?://[^\s/]+(/\S*)?",
        form="an address that begins with http:// or https://",
    )
    token_file: str | None = setting(
        None, "File with a token for its API, where `pebr submit` runs; --token-file wins"
    )
    namespace: str | None = _name("Namespace of the runs; null: an installation without users")
    service_account: str | None = _name("Service account of the pods; null: Kubeflow's default")
    secret: str | None = _name(
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


class Airflow(Section):
    """Tasks run on Airflow's workers, or in pods; these use image, resources and `kubeflow`."""

    volume_claim: str | None = _name(
        "Persistent volume claim that pods mount at /data; null: no pods"
    )
    pool: str = setting("default_pool", "Pool of the tasks; with one slot, DAGs may share a root")
