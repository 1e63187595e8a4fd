"""The component in a pipeline of its own: what it caches and what it runs anew."""

import json
import os

import pytest
from example_gen_runs import LOG, config_of, write_catalogue, write_log
from ml_metadata.proto import metadata_store_pb2
from tfx.orchestration import metadata
from tfx.orchestration.local.local_dag_runner import LocalDagRunner
from tfx.orchestration.pipeline import Pipeline

from components.click_log_example_gen.component import ClickLogExampleGen
from pebr_tf.errors import UserError

pytestmark = pytest.mark.slow

LIVE = metadata_store_pb2.Artifact.LIVE
COMPLETE, CACHED, FAILED = (
    metadata_store_pb2.Execution.State.Value(name) for name in ("COMPLETE", "CACHED", "FAILED")
)


def test_a_run_is_repeated_only_when_a_file_changed(tmp_path):
    """Spans too: a new one is read; a failed run leaves its dead letters and no artifact."""
    data, root = tmp_path / "data", tmp_path / "root"
    for span in (1, 2):
        (data / f"{span}").mkdir(parents=True)
        write_log(data / f"{span}", LOG)
    write_catalogue(data)
    config = config_of(data, log="{SPAN}/*.csv")
    connection = metadata.sqlite_metadata_connection_config(str(tmp_path / "metadata.db"))

    def accounts():
        LocalDagRunner().run(
            Pipeline(
                pipeline_name="test",
                pipeline_root=str(root),
                components=[ClickLogExampleGen(config)],
                enable_cache=True,
                metadata_connection_config=connection,
            )
        )
        files = (root / "ClickLogExampleGen" / "dead_letters").glob("*/accounting.json")
        latest = sorted(files, key=lambda file: int(file.parent.name))
        return [json.loads(file.read_text()) for file in latest]

    [first] = accounts()
    assert (first["span"], first["clicks"]["kept"]) == (2, 400)
    assert len(accounts()) == 1, "nothing changed"
    write_log(data / "2", LOG + LOG[:50], "more.csv")
    assert accounts()[1]["clicks"]["kept"] == 850
    before = (data / "items.csv").stat()
    write_catalogue(data)
    os.utime(data / "items.csv", ns=(before.st_atime_ns, before.st_mtime_ns + 10**6))
    assert len(accounts()) == 3, "the catalogue was written anew"
    (data / "3").mkdir()
    write_log(data / "3", [*LOG, *[("q", "unknown", 1, 0)] * 40])
    with pytest.raises(
        UserError, match=r"40 item not in the catalogue\. They are listed in (.*)\."
    ):
        accounts()
    [rejected] = (root / "ClickLogExampleGen" / "dead_letters").glob("*.rejected")
    assert (rejected / "dead_letters.jsonl.gz").exists()
    assert not (root / "ClickLogExampleGen" / "examples" / rejected.stem).exists()
    for span in (1, 2, 3):
        (data / f"{span}").rename(tmp_path / f"{span}")
    with pytest.raises(UserError, match=r"data\.click_log must match files of a span\. Received: "):
        accounts()
    with metadata.Metadata(connection) as handle:
        [*_, examples] = [
            artifact
            for artifact in handle.store.get_artifacts_by_type("Examples")
            if "/examples/" in artifact.uri and artifact.state == LIVE
        ]
        states = [run.last_known_state for run in handle.store.get_executions()]
    assert states == [COMPLETE, CACHED, COMPLETE, COMPLETE, FAILED, FAILED]
    assert examples.custom_properties["span"].int_value == 2
    assert examples.custom_properties["input_fingerprint"].string_value.startswith("click_log:")
