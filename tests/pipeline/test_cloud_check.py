"""Problems of a configuration, or of this machine, on Vertex AI: every sentence."""

import http.server
import json
import threading

import pytest
from google.auth.compute_engine import _metadata
from vertex_server import CLOUD, EMAIL, IDENTITY, cloud_config, write_key_file

from pebr_tf.cli.main import main
from pebr_tf.config import Config
from pebr_tf.errors import UserError
from pipeline.cloud_check import credential_problems, problems, require_cloud
from pipeline.vertex import default_credentials

QUERY = "bigquery://SELECT * FROM `shop-1.logs.clicks`"
ADVICE = (
    "Google Cloud credentials must be at hand: run gcloud auth application-default login, or name "
    "a file of them in GOOGLE_APPLICATION_CREDENTIALS. Received: "
)
ABSENT = f"{ADVICE}Your default credentials were not found."
UNKNOWN = "Not checked: permissions, quotas, and whether the image and the buckets exist."


@pytest.fixture
def nowhere(monkeypatch, tmp_path):
    """The home of a machine outside Google Cloud without credentials."""
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)
    return tmp_path


def test_a_config_without_problems():
    assert problems(cloud_config()) == []
    named = {key.replace(".", "__"): value for key, value in IDENTITY.items()}
    assert problems(cloud_config(**named)) == []
    require_cloud(cloud_config())


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


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"cloud__region": "europe-west44"},
            "cloud.region must be a region of Vertex AI. Received: 'europe-west44'.",
        ),
        (
            {"pipeline__root": "/srv/run"},
            "pipeline.root must be on gs:// to run on Vertex AI. Received: '/srv/run', a path of "
            "this machine.",
        ),
        (
            {"pipeline__root": "file:///srv/run"},
            "pipeline.root must be on gs:// to run on Vertex AI. Received: 'file:///srv/run', a "
            "path of this machine.",
        ),
        (
            {"pipeline__releases": "s3://shop/releases"},
            "pipeline.releases must be on gs:// to run on Vertex AI. Received: "
            "'s3://shop/releases', which components there do not reach.",
        ),
        (
            {"pipeline__root": QUERY},
            "pipeline.root must be on gs:// to run on Vertex AI. Received: "
            f"{QUERY!r}, which components there do not reach.",
        ),
        (
            {"data__click_log": "hdfs://name/clicks/*"},
            "data.click_log must be on gs:// or bigquery:// to run on Vertex AI. Received: "
            "'hdfs://name/clicks/*', which components there do not reach.",
        ),
        (
            {"data__catalogue": "gs:///items/*"},
            "data.catalogue must be on gs:// or bigquery:// to run on Vertex AI. Received: "
            "'gs:///items/*', which names no bucket.",
        ),
        (
            {"data__schema": "schema.pbtxt"},
            "data.schema must be on gs:// to run on Vertex AI. Received: 'schema.pbtxt', a path of "
            "this machine.",
        ),
        (
            {"cloud__network": "default"},
            "cloud.network must be a whole name, such as projects/12345/global/networks/main. "
            "Received: 'default'.",
        ),
        (
            {"data__catalogue": "bigquery://logs.items"},
            "data.catalogue must be bigquery://project.dataset.table or bigquery:// and a query. "
            "Received: 'bigquery://logs.items'.",
        ),
        (
            {
                "cloud__dataflow__enabled": True,
                "pipeline__beam_args": ["--streaming", "--runner", "DirectRunner"],
            },
            "pipeline.beam_args must leave --runner to cloud.dataflow, which is enabled. "
            "Received: 'DirectRunner'.",
        ),
        (
            {"cloud__dataflow__enabled": True, "pipeline__beam_args": ["--temp_location=/tmp/a"]},
            "pipeline.beam_args must leave --temp_location to cloud.dataflow, which is enabled. "
            "Received: '/tmp/a'.",
        ),
    ],
)
def test_each_problem_is_one_sentence(changes, expected):
    config = cloud_config(**changes)
    assert problems(config) == [expected]
    with pytest.raises(UserError) as caught:
        require_cloud(config)
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"data__catalogue": None, "data__schema": "gs://shop-logs/schema.pbtxt"},
        {"data__click_log": "bigquery://shop-1.logs.clicks", "data__catalogue": None},
        {"data__click_log": QUERY},
        {"data__click_log": QUERY, "cloud__dataflow__enabled": True},
        {"pipeline__beam_args": ["--runner=DirectRunner", "--temp_location=/tmp/a"]},
        {"training__strategy": "multi_worker"},
        {"cloud__resources__trainer": "16 cpu, 64 GB, 1 NVIDIA_L4"},
    ],
)
def test_valid_settings(changes):
    assert problems(cloud_config(**changes)) == []


@pytest.mark.slow
def test_tables_are_recognised_as_by_the_reader():
    from components.click_log_example_gen.bigquery import reader

    for name in ("a.b.c", " `a.b.c` ", "a.b", "a..c", "a.b.c.d", "", "SELECT 1", "a.b.c d"):
        source = f"bigquery://{name}"
        found = problems(cloud_config(data__click_log=source, cloud__dataflow__enabled=True))
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
        "(and 6 more: pebr check-cloud --config FILE lists them)."
    )


def test_no_credentials(nowhere):
    assert credential_problems() == [ABSENT]


def test_a_key_file(nowhere, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_key_file(nowhere)))
    assert credential_problems() == []
    assert default_credentials().service_account_email == EMAIL


def test_the_credentials_of_gcloud(nowhere, monkeypatch, recwarn):
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


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "File {file} was not found"),
        ("a: 1", "File {file} is not a valid json file"),
        ("{}", "The file {file} does not have a valid type"),
        (
            "[]",
            "credentials that cannot be read, AttributeError: 'list' object has no attribute 'get'",
        ),
        ('{"type": "service_account"}', "Failed to load service account credentials from {file}"),
        ('{"type": "authorized_user"}', "Failed to load authorized user credentials from {file}"),
        (
            '{"type": "impersonated_service_account"}',
            "credentials that cannot be read, AttributeError: 'NoneType' object has no attribute "
            "'get'",
        ),
    ],
)
def test_a_file_without_credentials(content, reason, nowhere, monkeypatch):
    file = nowhere / "key.json"
    if content is not None:
        file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert credential_problems() == [f"{ADVICE}{reason.format(file=file)}."]


def test_a_folder_for_a_file(nowhere, monkeypatch):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(nowhere))
    assert credential_problems() == [f"{ADVICE}{nowhere}: Is a directory."]


class Metadata(http.server.BaseHTTPRequestHandler):
    """The metadata server of a machine of Google Cloud."""

    def do_GET(self):
        """Returns the project for every path."""
        self.send_response(200)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Type", "application/text")
        self.end_headers()
        self.wfile.write(b"shop-1")

    def log_message(self, *_):
        """Logs nothing."""


@pytest.fixture
def metadata_server():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_machine_of_google_cloud_has_credentials(nowhere, metadata_server, monkeypatch):
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", metadata_server)
    monkeypatch.setenv("GCE_METADATA_IP", metadata_server)
    assert credential_problems() == []


def checked(capsys, file):
    """Exit code, lines, and standard error of `pebr check-cloud`."""
    with pytest.raises(SystemExit) as exit_:
        main(["check-cloud", "--config", str(file)])
    output = capsys.readouterr()
    return exit_.value.code, output.out.splitlines(), output.err


def test_the_command_lists_everything(nowhere, capsys):
    config = Config().replace("pipeline.root", "run/[bold]")
    config.dump(nowhere / "pebr.yaml")
    expected = (2, [*problems(config), ABSENT, UNKNOWN], "")
    assert checked(capsys, nowhere / "pebr.yaml") == expected
    assert len(expected[1]) == 9


def test_the_command_prints_the_settings(nowhere, monkeypatch, capsys):
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_key_file(nowhere)))
    cloud_config().dump(nowhere / "pebr.yaml")
    lines = [
        "project   shop-1",
        "region    europe-west4",
        f"image     {CLOUD['cloud.image']}",
        "root      gs://shop-pebr/run",
        UNKNOWN,
    ]
    assert checked(capsys, nowhere / "pebr.yaml") == (0, lines, "")


def test_an_invalid_config(tmp_path, capsys):
    file = tmp_path / "pebr.yaml"
    file.write_text("cloud: {image: shop/pebr}")
    code, lines, error = checked(capsys, file)
    assert (code, lines) == (2, [])
    assert error == (
        f"pebr: {file}: cloud.image must be null or an image with a tag or a digest, such as "
        "pebr:1. Received: 'shop/pebr'.\n"
    )
