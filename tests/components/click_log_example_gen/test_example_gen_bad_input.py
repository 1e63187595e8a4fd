"""Bad files, full disks and kills: a clear error or a correct result, never half an artifact.

The tests of `pebr_tf.data.tables` hold every error of a single file.
"""

import gzip
import shutil

import pytest
from example_gen_runs import (
    HEADER,
    LOG,
    config_of,
    csv_of,
    left_behind,
    run,
    write_catalogue,
    write_log,
)

from components.click_log_example_gen import bundle_writer, publish, settings
from pebr_tf.config import Config, Split
from pebr_tf.data import splits
from pebr_tf.data.accounting import Account
from pebr_tf.errors import UserError

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path):
    write_log(tmp_path)
    write_catalogue(tmp_path)
    return tmp_path


def error_of(folder, config):
    """The text of the error that ends the run; the artifacts are empty then."""
    with pytest.raises(UserError) as error:
        run(folder, config)
    assert [name for name in left_behind(folder) if ".rejected/" not in name] == []
    return str(error.value).replace(str(folder), "DIR")


def test_click_logs_that_cannot_be_used(folder):
    (folder / "log.csv").write_text(HEADER)
    assert error_of(folder, config_of(folder)) == (
        "The click log must have a good row. Received: no row in DIR/log.csv."
    )
    whole = gzip.compress(csv_of(LOG).encode())
    (folder / "log.csv.gz").write_bytes(whole[: len(whole) // 2])
    assert error_of(folder, config_of(folder, log="log.csv.gz")) == (
        "DIR/log.csv.gz must be readable to its end. Received: Compressed file ended before the "
        "end-of-stream marker was reached."
    )


def test_paths_without_files(folder):
    (folder / "log.csv").unlink()
    assert error_of(folder, config_of(folder)) == (
        "data.click_log must name a file, or files by a glob. Received: DIR/log.csv: no such file."
    )
    assert error_of(folder, config_of(folder, log="")).endswith("Received: DIR: a folder.")
    write_log(folder)
    assert error_of(folder, config_of(folder, catalogue="none/*.csv")) == (
        "data.catalogue must name a file, or files by a glob. Received: DIR/none/*.csv: no such "
        "file."
    )


def test_catalogues_that_cannot_be_used(folder):
    (folder / "items.csv").write_text("item_id,title\ni1,t\n")
    assert error_of(folder, config_of(folder)) == (
        "DIR/items.csv must have the columns brand, price. Received: item_id, title."
    )
    with pytest.raises(UserError) as error:
        Account("items", ["DIR/items.csv"], 0, {}, {}).check(0.01, "letters")
    # One row in a hundred may be bad, and not one more.
    Account("items", [], 500, {"items": 495}, {"no id": 5}).check(0.01, "letters")
    with pytest.raises(UserError, match=r"\(1\.000%\)\. Received: 6 of 500 rows \(1\.200%\): 6 no"):
        Account("items", [], 500, {"items": 494}, {"no id": 6}).check(0.01, "letters")
    assert str(error.value) == (
        "The catalogue must have a good row. Received: no row in DIR/items.csv."
    )


def test_too_few_clicks_for_every_split(folder):
    every = (
        "Every split must have a click (split.by: pair; train 80%, calibrate 10%, test 10%), but "
        "none is in "
    )
    write_log(folder, [("one", f"i{n % 20}", 1, n) for n in range(300)])
    assert error_of(folder, config_of(folder)) == (
        f"{every}test. Received rows with clicks: train 240, calibrate 60, test 0; the log has 1 "
        "query with clicks: at least 10 are needed."
    )
    with pytest.raises(UserError) as error:
        splits.check_splits(Split(), {"train": 50}, 50, 0)
    assert str(error.value) == (
        f"{every}calibrate and test: more queries, or another split.by or seed, may help. "
        "Received rows with clicks: train 50, calibrate 0, test 0."
    )


@pytest.mark.parametrize("queries", [9, 10])
def test_held_out_queries_are_counted_before_training(folder, queries):
    """Those with clicks, each once, over all files."""
    for part in range(2):
        rows = [(f"q{n % queries}", f"i{n % 19}", 1, n) for n in range(400)]
        unclicked = [(f"unclicked {n}", "i1", 0, n) for n in range(50)]
        write_log(folder, rows + unclicked, f"log{part}.csv")
    config = config_of(folder, log="log?.csv", split__by="time")
    if queries < splits.LEAST_QUERIES:
        assert error_of(folder, config) == (
            "the splits calibrate and test must have at least 10 queries with clicks that were "
            "held out. Received: 9."
        )
    else:
        assert len(run(folder, config).all_clicks()) == 900


def test_features_named_like_those_of_a_click_are_rejected():
    config = Config().replace("features.item_categories", ["clicks"])
    with pytest.raises(UserError, match=r"have other names than a click's\. Received: clicks\."):
        settings.exec_properties(config)
    config = Config().replace("features.item_numbers", ["title"])
    with pytest.raises(UserError, match=r"must be no item_numbers\. Received: title\."):
        settings.exec_properties(config)


def test_a_full_disk_leaves_nothing(folder, monkeypatch):
    """While the test split is written; the others are on disk by then."""
    name = bundle_writer.BundleWriter._new_path

    def on_a_full_disk(self, ending):
        return "/dev/full" if ending == "test.gz" else name(self, ending)

    monkeypatch.setattr(bundle_writer.BundleWriter, "_new_path", on_a_full_disk)
    assert error_of(folder, config_of(folder)) == (
        "DIR/out/examples/1 must have room for the examples. Received: No space left on device."
    )


def test_a_run_after_a_kill_is_right(folder, snapshot_at):
    out = folder / "out"
    writer = bundle_writer.BundleWriter
    moments = {"writing": (writer, "keep"), "publishing": (publish.fileio, "rename")}
    for moment, place in moments.items():
        snapshot_at(*place, out, folder / moment, call=2)
    run(folder, config_of(folder))
    whole = left_behind(folder)
    assert whole == sorted(
        [
            "catalogue/1/Split-items/data_tfrecord-00000-of-00001.gz",
            "dead_letters/1/accounting.json",
            "dead_letters/1/dead_letters.jsonl.gz",
            *(
                f"{name}/1/Split-{split}/data_tfrecord-00000-of-00001.gz"
                for name in ("examples", "samples")
                for split in ("train", "calibrate", "test")
            ),
            "examples/1/log_size.json",
            *(
                f"examples/1/Split-texts/data_tfrecord-{number:05d}-of-00016.gz"
                for number in range(16)
            ),
        ]
    )
    for moment in moments:
        shutil.rmtree(out)
        (folder / moment).rename(out)
        remains = left_behind(folder)
        assert remains, "the kill came too early to leave anything"
        assert not any(name.endswith("accounting.json") for name in remains)
        assert len(run(folder, config_of(folder)).all_clicks()) == len(LOG)
        assert left_behind(folder) == whole
