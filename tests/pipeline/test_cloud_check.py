"""Problems of a configuration, or of this machine, on Vertex AI: every sentence."""

import http.server
import json
import threading

import pytest
import yaml
from google.auth._default import _CLOUD_SDK_MISSING_CREDENTIALS, _VALID_TYPES
from google.auth.compute_engine import _metadata
from text_tables import cases
from vertex_server import CLOUD, EMAIL, cloud_config, write_key_file

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cloud_check import credential_problems, problems, require_cloud
from pipeline.vertex import default_credentials

ADVICE = (
    "Google Cloud credentials must be available: run gcloud auth application-default login, or "
    "set GOOGLE_APPLICATION_CREDENTIALS to a credentials file. Received: "
)
ABSENT = f"{ADVICE}{_CLOUD_SDK_MISSING_CREDENTIALS}"
INVALID_TYPE = f"does not have a valid type. Type is None, expected one of {_VALID_TYPES}"
NO_OBJECT = "'list' object has no attribute 'get'"
FOLDER = "a folder, not a file"
UNKNOWN = "Not checked: permissions, quotas, and whether the image and the buckets exist."


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """The home of a machine outside Google Cloud without credentials."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    return tmp_path


# A target, the configuration that is changed and the changes; then all problems, one after another.
PROBLEMS = """\
vertex default {}
    cloud.project must name a project to run on Vertex AI. Received: null.
    cloud.region must name a region to run on Vertex AI. Received: null.
    cloud.image must name an image to run on Vertex AI. Received: null.
    pipeline.root must be on gs:// to run on Vertex AI. Received: 'run', a path of this machine.
    pipeline.releases must be on gs:// to run on Vertex AI. Received: 'releases', a path of this
    machine.
    data.click_log must be on gs:// or bigquery:// to run on Vertex AI. Received: 'data/clicks/*',
    a path of this machine.
    data.catalogue must be on gs:// or bigquery:// to run on Vertex AI. Received:
    'data/catalogue/*', a path of this machine.
vertex vertex {cloud.region: europe-west44, pipeline.root: file:///srv/run, cloud.network: default,\
 pipeline.releases: s3://shop/releases, data.schema: hdfs://name/schema.pbtxt}
    cloud.region must be a region of Vertex AI. Received: 'europe-west44'.
    pipeline.root must be on gs:// to run on Vertex AI. Received: 'file:///srv/run', a path of this
    machine.
    pipeline.releases must be on gs:// to run on Vertex AI. Received: 's3://shop/releases', which
    components there do not reach.
    data.schema must be on gs:// to run on Vertex AI. Received: 'hdfs://name/schema.pbtxt', which
    components there do not reach.
    cloud.network must be a whole name, such as projects/12345/global/networks/main. Received:
    'default'.
vertex vertex {data.click_log: 'bigquery://logs.items', data.catalogue: 'gs:///items/*',\
 cloud.dataflow.enabled: true,\
 pipeline.beam_args: [--temp_location=/tmp/a, --runner, DirectRunner]}
    data.catalogue must be on gs:// or bigquery:// to run on Vertex AI. Received: 'gs:///items/*',
    which names no bucket.
    data.click_log must be bigquery://project.dataset.table or bigquery:// and a query. Received:
    'bigquery://logs.items'.
    pipeline.beam_args must leave --runner to cloud.dataflow, which is enabled. Received:
    'DirectRunner'.
    pipeline.beam_args must leave --temp_location to cloud.dataflow, which is enabled. Received:
    '/tmp/a'.
vertex vertex {}
vertex vertex {cloud.service_account: a@b.com, cloud.network: projects/12345/global/networks/main}
vertex vertex {data.catalogue: null, data.schema: gs://shop-logs/schema.pbtxt}
vertex vertex {data.click_log: bigquery://SELECT * FROM a.b.c, cloud.dataflow.enabled: true}
vertex vertex {pipeline.beam_args: [--runner=DirectRunner, --temp_location=/tmp/a]}
vertex vertex {cloud.resources.trainer: '4 cpu, 16 GB, 2 nvidia.com/gpu'}
    cloud.resources.trainer must name an accelerator of Vertex AI, such as NVIDIA_L4. Received: '4
    cpu, 16 GB, 2 nvidia.com/gpu'.
kubeflow default {pipeline.root: file:///srv/run, pipeline.releases: s3:///releases,\
 data.click_log: hdfs://name/log, data.catalogue: bigquery://a.b.c, cloud.dataflow.enabled: true,\
 training.strategy: multi_worker, cloud.training_job.workers: 2,\
 cloud.resources.trainer: '4 cpu, 16 GB, 1 NVIDIA_L4'}
    cloud.image must name an image to run on Kubeflow. Received: null.
    pipeline.root must be on s3://, minio:// or gs:// to run on Kubeflow. Received:
    'file:///srv/run', a path of this machine.
    pipeline.releases must be on s3://, minio:// or gs:// to run on Kubeflow. Received:
    's3:///releases', which names no bucket.
    data.click_log must be on s3://, minio://, gs:// or bigquery:// to run on Kubeflow. Received:
    'hdfs://name/log', which components there do not reach.
    cloud.dataflow.enabled must be false to run on Kubeflow. Received: true.
    cloud.training_job.workers must be 1 to run on Kubeflow. Received: 2.
    cloud.resources.trainer must name an accelerator by its resource in Kubernetes, such as
    nvidia.com/gpu. Received: '4 cpu, 16 GB, 1 NVIDIA_L4'.
kubeflow kubeflow {data.click_log: bigquery://SELECT 1}
    cloud.project must name a project to run on Kubeflow. Received: null.
kubeflow kubeflow {data.catalogue: bigquery://SELECT 1, pipeline.beam_args: [--project=shop-1]}
kubeflow kubeflow {data.click_log: bigquery://SELECT 1, cloud.project: shop-1}
kubeflow kubeflow {kubeflow.environment: [AWS_REGION=eu-central-1]}
    kubeflow.environment must have AWS_ENDPOINT_URL, the address of the server of minio:// paths.
    Received: ['AWS_REGION=eu-central-1'].
kubeflow kubeflow {kubeflow.environment: [], pipeline.root: s3://shop/run}
kubeflow kubeflow {pipeline.releases: 's3://shop/run?region=eu'}
    pipeline.releases must be on s3://, minio:// or gs:// to run on Kubeflow. Received:
    's3://shop/run?region=eu', with options, which components do not read.
kubeflow kubeflow {data.click_log: 's3://shop/run/clicks-?.tsv'}
airflow default {data.catalogue: null}
    pipeline.root must be an absolute path to run on Airflow. Received: 'run'.
    pipeline.releases must be an absolute path to run on Airflow. Received: 'releases'.
    data.click_log must be an absolute path to run on Airflow. Received: 'data/clicks/*'.
airflow default {pipeline.root: /data/run, pipeline.releases: /srv/releases,\
 data.click_log: /srv/log, data.catalogue: null, airflow.volume_claim: pebr,\
 cloud.resources.trainer: '4 cpu, 16 GB, 1 NVIDIA_L4'}
    pipeline.releases must be below /data, the volume of the pods, to run on Airflow. Received:
    '/srv/releases'.
    data.click_log must be below /data, the volume of the pods, to run on Airflow. Received:
    '/srv/log'.
    cloud.image must name an image to run on Airflow. Received: null.
    cloud.resources.trainer must name an accelerator by its resource in Kubernetes, such as
    nvidia.com/gpu. Received: '4 cpu, 16 GB, 1 NVIDIA_L4'.
airflow default {pipeline.root: /srv/run, pipeline.releases: hdfs://name/releases,\
 data.click_log: ftp://name/clicks, data.catalogue: bigquery://a.b, cloud.dataflow.enabled: true,\
 training.strategy: multi_worker, cloud.training_job.workers: 2}
    pipeline.releases must be on s3://, minio:// or gs:// to run on Airflow. Received:
    'hdfs://name/releases', which components there do not reach.
    data.click_log must be on s3://, minio://, gs:// or bigquery:// to run on Airflow. Received:
    'ftp://name/clicks', which components there do not reach.
    data.catalogue must be bigquery://project.dataset.table or bigquery:// and a query. Received:
    'bigquery://a.b'.
    cloud.dataflow.enabled must be false to run on Airflow. Received: true.
    cloud.training_job.workers must be 1 to run on Airflow. Received: 2.
airflow default {pipeline.root: /srv/run, pipeline.releases: minio://shop/releases,\
 data.click_log: /srv/log, data.catalogue: null, kubeflow.environment: []}
airflow airflow {}
airflow airflow {pipeline.releases: minio://shop/releases, kubeflow.environment: []}
    kubeflow.environment must have AWS_ENDPOINT_URL, the address of the server of minio:// paths.
    Received: [].
"""


@pytest.mark.parametrize(("case", "expected"), cases(PROBLEMS))
def test_all_problems_are_listed(case, expected):
    """On Airflow without pods, the workers have variables of their own."""
    target, base, changes = case.split(maxsplit=2)
    config = Config() if base == "default" else Config.load(f"examples/{base}.yaml")
    config = cloud_config() if base == "vertex" else config
    found = problems(config.replace_all(yaml.safe_load(changes)), target)
    assert " ".join(found) == expected


def test_a_remote_root_of_airflow_is_checked_where_it_is_submitted():
    remote = Config().replace("pipeline.root", "gs://shop/run")
    assert problems(remote, "airflow") == problems(remote, "vertex")
    require_cloud(cloud_config())


@pytest.mark.slow
def test_tables_are_recognised_as_by_the_reader():
    from components.click_log_example_gen.bigquery import reader

    for name in ("a.b.c", " `a.b.c` ", "a.b", "a..c", "a.b.c.d", "", "SELECT 1", "a.b.c d"):
        source = f"bigquery://{name}"
        found = problems(cloud_config(**{"data.click_log": source}))
        try:
            reader(source, [])
        except UserError:
            assert len(found) == 1, name
        else:
            assert found == [], name


def test_the_first_of_several_problems(rejection):
    assert rejection(require_cloud, Config()) == (
        "cloud.project must name a project to run on Vertex AI. Received: null "
        "(and 6 more: pebr check --target vertex --config FILE lists them)."
    )


def test_credentials_are_found(nowhere, monkeypatch, recwarn):
    assert credential_problems() == [ABSENT]
    # Without gcloud, which the library would ask for its project.
    monkeypatch.setenv("PATH", str(nowhere))
    user = {
        "type": "authorized_user",
        # The client of gcloud, which the library warns about.
        "client_id": "764086051850-6qr4p6gpi6hn506pt8ejuq83di341hur.apps.googleusercontent.com",
        "client_secret": "b",
        "refresh_token": "c",
    }
    (nowhere / "application_default_credentials.json").write_text(json.dumps(user))
    assert credential_problems() == []
    assert not recwarn.list
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_key_file(nowhere)))
    assert credential_problems() == []
    assert default_credentials().service_account_email == EMAIL


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "File {file} was not found"),
        (FOLDER, "{file}: Is a directory"),
        ("a: 1", "File {file} is not a valid json file"),
        ("{}", f"The file {{file}} {INVALID_TYPE}"),
        ("[]", f"credentials that cannot be read, AttributeError: {NO_OBJECT}"),
        ('{"type": "service_account"}', "Failed to load service account credentials from {file}"),
        ('{"type": "authorized_user"}', "Failed to load authorized user credentials from {file}"),
    ],
)
def test_a_file_without_credentials(content, reason, nowhere, monkeypatch):
    file = nowhere / "key.json"
    if content == FOLDER:
        file.mkdir()
    elif content is not None:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert credential_problems() == [f"{ADVICE}{reason.format(file=file)}."]


class MetadataServer(http.server.BaseHTTPRequestHandler):
    """The metadata server of a machine of Google Cloud: returns the project for every path."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "application/text")
        self.end_headers()
        self.wfile.write(b"shop-1")


def test_a_machine_of_google_cloud_has_credentials(nowhere, monkeypatch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), MetadataServer) as server:
        threading.Thread(target=server.serve_forever).start()
        address = f"127.0.0.1:{server.server_port}"
        monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
        monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", address)
        monkeypatch.setenv("GCE_METADATA_IP", address)
        try:
            assert credential_problems() == []
        finally:
            server.shutdown()


def test_the_command_lists_everything(nowhere, pebr):
    config = Config().replace("pipeline.root", "run/[bold]")
    config.dump(nowhere / "pebr.yaml")
    code, out, err = pebr("check", "--target", "vertex", "--config", nowhere / "pebr.yaml")
    expected = [*problems(config), ABSENT, UNKNOWN]
    assert (code, out.splitlines(), err) == (2, expected, "")
    assert len(expected) == 9


def test_the_command_prints_the_settings(nowhere, key_file, monkeypatch, pebr):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(key_file))
    cloud_config().dump(nowhere / "pebr.yaml")
    lines = [
        "project   shop-1",
        "region    europe-west4",
        f"image     {CLOUD['cloud.image']}",
        "root      gs://shop-pebr/run",
        UNKNOWN,
    ]
    code, out, err = pebr("check", "--target", "vertex", "--config", nowhere / "pebr.yaml")
    assert (code, out.splitlines(), err) == (0, lines, "")
