"""A real server on a release of a hostile catalogue, and a real browser."""

import shutil
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from explorer_pages import HOSTILE
from service_helpers import served
from tiny_release import write_parts

from serving.push import push


@pytest.fixture(scope="session")
def release(tmp_path_factory, tower_files):
    folder = tmp_path_factory.mktemp("explored")
    parts = write_parts(folder, *tower_files, examples=["red phone", "phone"])
    table = pq.read_table(parts.index / "payload.parquet")
    table = table.append_column("note", pa.array([HOSTILE] * len(table)))
    pq.write_table(table, parts.index / "payload.parquet")
    (parts.evaluation / "report.html").write_text("<style>p { color: red }</style><p>report</p>")
    return push(folder / "releases", parts)


@pytest.fixture(scope="module")
def service(release):
    """The address of a server, and the retriever that answers there."""
    with served(release.directory) as service:
        yield SimpleNamespace(
            address=str(service.http.base_url), retriever=service.engine.retriever
        )


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium; per module, because its event loop disturbs other tests."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium is installed")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()
