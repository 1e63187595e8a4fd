"""Problems of a configuration, or of this machine, on Vertex AI: every sentence."""

import http.server
import json
import threading

import pytest
from google.auth._default import _CLOUD_SDK_MISSING_CREDENTIALS, _VALID_TYPES
from google.auth.compute_engine import _metadata
from vertex_server import CLOUD, EMAIL, IDENTITY, cloud_config, write_key_file

from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cloud_check import credential_problems, problems, require_cloud
from pipeline.vertex import default_credentials

QUERY = "bigquery://SELECT * FROM `shop-1.logs.clicks`"
ADVICE = (
    "Google Cloud credentials must be available: run gcloud auth application-default login, or "
    "set GOOGLE_APPLICATION_CREDENTIALS to a credentials file. Received: "
)
ABSENT = f"{ADVICE}{_CLOUD_SDK_MISSING_CREDENTIALS}"
FOLDER = "a folder, not a file"
UNKNOWN = "Not checked: permissions, quotas, and whether the image and the buckets exist."


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """The home of a machine outside Google Cloud without credentials."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    return tmp_path


def test_all_problems_are_listed():
    assert problems(Config()) == [
        "cloud.project must name a project to run on Vertex AI. Received: null.",
        "cloud.region must name a region to run on Vertex AI. Received: null.",
        "cloud.image must name an image to run on Vertex AI. Received: null.",
        "pipeline.root must be on gs:// to run on Vertex AI. Received: 'run', a path of this "
        "machine.",
        "pipeline.releases must be on gs:// to run on Vertex AI. Received: 'releases', a path of "
        "this machine.",
        "data.click_log must be on gs:// or bigquery:// to run on Vertex AI. Received: "
        "'data/clicks/*', a path of this machine.",
        "data.catalogue must be on gs:// or bigquery:// to run on Vertex AI. Received: "
        "'data/catalogue/*', a path of this machine.",
    ]
    changed = {
        "cloud.region": "europe-west44",
        "pipeline.root": "file:///srv/run",
        "pipeline.releases": "s3://shop/releases",
        "data.click_log": "bigquery://logs.items",
        "data.catalogue": "gs:///items/*",
        "data.schema": "hdfs://name/schema.pbtxt",
        "cloud.network": "default",
        "cloud.dataflow.enabled": True,
        "pipeline.beam_args": ["--temp_location=/tmp/a", "--runner", "DirectRunner"],
    }
    assert problems(cloud_config(**changed)) == [
        "cloud.region must be a region of Vertex AI. Received: 'europe-west44'.",
        "pipeline.root must be on gs:// to run on Vertex AI. Received: 'file:///srv/run', a "
        "path of this machine.",
        "pipeline.releases must be on gs:// to run on Vertex AI. Received: "
        "'s3://shop/releases', which components there do not reach.",
        "data.catalogue must be on gs:// or bigquery:// to run on Vertex AI. Received: "
        "'gs:///items/*', which names no bucket.",
        "data.schema must be on gs:// to run on Vertex AI. Received: 'hdfs://name/schema.pbtxt', "
        "which components there do not reach.",
        "cloud.network must be a whole name, such as projects/12345/global/networks/main. "
        "Received: 'default'.",
        "data.click_log must be bigquery://project.dataset.table or bigquery:// and a query. "
        "Received: 'bigquery://logs.items'.",
        "pipeline.beam_args must leave --runner to cloud.dataflow, which is enabled. "
        "Received: 'DirectRunner'.",
        "pipeline.beam_args must leave --temp_location to cloud.dataflow, which is enabled. "
        "Received: '/tmp/a'.",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        IDENTITY,
        {"data.catalogue": None, "data.schema": "gs://shop-logs/schema.pbtxt"},
        {"data.click_log": QUERY, "cloud.dataflow.enabled": True},
        {"pipeline.beam_args": ["--runner=DirectRunner", "--temp_location=/tmp/a"]},
    ],
)
def test_valid_settings(changes):
    assert problems(cloud_config(**changes)) == []
    require_cloud(cloud_config(**changes))


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


def test_the_first_of_several_problems():
    with pytest.raises(UserError) as caught:
        require_cloud(Config())
    assert str(caught.value) == (
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
        (
            "{}",
            "The file {file} does not have a valid type. Type is None, expected one of "
            f"{_VALID_TYPES}",
        ),
        (
            "[]",
            "credentials that cannot be read, AttributeError: 'list' object has no attribute 'get'",
        ),
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
