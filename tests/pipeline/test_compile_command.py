"""`pebr compile`: a file, whole or none, and a sentence for every mistake."""

import pytest
from test_kubeflow_v2_runner import CLOUD

from pebr_tf.cli.main import main
from pipeline import pipeline as pipeline_module
from pipeline.kubeflow_v2_runner import compile_job, to_bytes


@pytest.fixture(autouse=True)
def _same_code(monkeypatch):
    """Digests cost a second each, and others test them."""
    monkeypatch.setattr(pipeline_module, "source_digest", lambda name: name)


@pytest.fixture(autouse=True)
def _logs_stay_on(monkeypatch):
    """The tests after these read logs."""
    monkeypatch.setattr("pipeline.quiet.set_logging", lambda: None)


def run(folder, text, *options):
    config, out = folder / "pebr.yaml", folder / "out" / "pipeline.json"
    config.write_text(text, encoding="utf-8")
    arguments = ["compile", "--target", "vertex", "--config", str(config), "--out", str(out)]
    with pytest.raises(SystemExit) as caught:
        main([*arguments, *options])
    return int(caught.value.code or 0)


@pytest.mark.parametrize(
    ("options", "same"),
    [((), {}), (("--index-only", "--span", "7"), {"index_only": True, "span": 7})],
)
def test_it_writes_the_compiled_job(tmp_path, capsys, options, same):
    assert run(tmp_path, CLOUD.to_yaml(), *options) == 0
    out = tmp_path / "out" / "pipeline.json"
    assert out.read_bytes() == to_bytes(compile_job(CLOUD, **same))
    tasks = 9 if "--index-only" in options else 11
    told = f"Wrote {out}: {tasks} tasks, image europe-docker.pkg.dev/shop/pebr:7.\n"
    assert capsys.readouterr().out == told


def test_a_mistake_is_one_sentence(tmp_path, capsys):
    assert run(tmp_path, CLOUD.to_yaml(comments=False).replace("shop/pebr:7", "shop/pebr")) == 2
    assert capsys.readouterr() == (
        "",
        f"pebr: {tmp_path}/pebr.yaml: cloud.image must be null or an image with a tag or a digest, "
        "such as pebr:1. Received: 'europe-docker.pkg.dev/shop/pebr'.\n",
    )
    assert not (tmp_path / "out").exists()
