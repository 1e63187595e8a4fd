"""The digest of a component's code: which edits change it and which do not."""

import pytest

from pipeline.source import source_digest

# executor -> folders -> files; a package that brings two modules together; nobody needs `other`.
FILES = {
    "components/__init__.py": "",
    "components/pusher/__init__.py": "from components.pusher.component import Pusher\n",
    "components/pusher/component.py": "class Pusher: pass\n",
    "components/pusher/executor.py": (
        "import json\n"
        "from components.folders import publish\n"
        "from pebr_tf.metrics import STRATA\n"
        "def late():\n"
        "    import pebr_tf.report\n"
    ),
    "components/folders.py": "from pebr_tf import files\n",
    "components/other.py": "from components.pusher import executor\n",
    "pebr_tf/__init__.py": "from pebr_tf import environment\nenvironment.configure()\n",
    "pebr_tf/environment.py": "def configure(): pass\n",
    "pebr_tf/files.py": "",
    "pebr_tf/metrics/__init__.py": (
        "from pebr_tf.metrics.gates import gates\n"
        "from pebr_tf.metrics.strata import STRATA\n"
        "__all__ = ['STRATA', 'gates']\n"
    ),
    "pebr_tf/metrics/gates.py": "gates = ()\n",
    "pebr_tf/metrics/strata.py": "STRATA = ()\n",
    "pebr_tf/report.py": "",
    "pipeline/__init__.py": "",
    "pipeline/display.py": "",
}
MODULE = "components.pusher.executor"


@pytest.fixture
def root(tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def edited(root, name, line="# edited\n"):
    with (root / name).open("a") as file:
        file.write(line)
    return source_digest(MODULE, root)


RUNS = [
    "components/pusher/executor.py",
    "components/folders.py",
    "pebr_tf/files.py",
    # Imported inside of a function, by a package for its own use, by a package for its users.
    "pebr_tf/report.py",
    "pebr_tf/environment.py",
    "pebr_tf/metrics/strata.py",
    # Packages run before their modules.
    "components/__init__.py",
    "components/pusher/__init__.py",
    "pebr_tf/metrics/__init__.py",
]
ELSEWHERE = ["components/other.py", "components/pusher/component.py", "pebr_tf/metrics/gates.py"]


def test_an_edit_of_what_runs_is_seen_and_an_edit_elsewhere_is_not(root):
    for name in (*RUNS, *ELSEWHERE):
        before = source_digest(MODULE, root)
        assert (edited(root, name) != before) == (name in RUNS), name
    # How progress is shown is no part of a result.
    before = edited(root, "components/pusher/executor.py", "from pipeline.display import bar\n")
    assert edited(root, "pipeline/display.py") == before
    # Modules may import each other.
    assert edited(root, "pebr_tf/files.py", "from components.pusher import executor\n") != before


@pytest.mark.parametrize("name", ["page.html", "page.css"])
def test_a_template_beside_a_module_that_runs_is_seen(root, name):
    before = source_digest(MODULE, root)
    (root / "components/pusher" / name).write_text("<p>")
    one = source_digest(MODULE, root)
    (root / "components/pusher" / name).write_text("<b>")
    assert len({before, one, source_digest(MODULE, root)}) == 3


def test_a_star_and_a_whole_package_bring_all_of_it(root):
    for line in ("from pebr_tf.metrics import *\n", "import pebr_tf.metrics\n"):
        before = edited(root, "components/pusher/executor.py", line)
        assert edited(root, "pebr_tf/metrics/gates.py") != before
        (root / "components/pusher/executor.py").write_text(FILES["components/pusher/executor.py"])


def test_a_module_that_moves_is_seen(root):
    before = source_digest(MODULE, root)
    (root / "pebr_tf/files").mkdir()
    (root / "pebr_tf/files.py").rename(root / "pebr_tf/files/__init__.py")
    assert source_digest(MODULE, root) == before, "the name and the text are the same"
    (root / "pebr_tf/files/__init__.py").rename(root / "pebr_tf/names.py")
    (root / "components/folders.py").write_text("from pebr_tf import names\n")
    assert source_digest(MODULE, root) != before


def test_where_the_project_lies_does_not_matter(root, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    # The order in which files were made must not matter either.
    for name, text in reversed(FILES.items()):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text(text)
    assert source_digest(MODULE, other) == source_digest(MODULE, root)


def test_rejection(root):
    with pytest.raises(ValueError, match=r"module must be one of .* Received: components\.none\."):
        source_digest("components.none", root)
    with pytest.raises(ValueError, match=r"Received: json\."):
        source_digest("json", root)
    (root / "components/folders.py").write_text("from . import pusher\n")
    with pytest.raises(ValueError, match=r"folders\.py must import by whole names"):
        source_digest(MODULE, root)
