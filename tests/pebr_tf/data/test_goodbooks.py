"""The importer on a small library with the dirt of the real one."""

import zipfile

import pyarrow.parquet as pq
import pytest
from pebr_command import run

from pebr_tf.config import Config
from pebr_tf.data.goodbooks import read_goodbooks, write_goodbooks
from pebr_tf.errors import UserError

# The last is without a year and a language.
BOOKS = [
    "book_id,goodreads_book_id,title,authors,original_publication_year,language_code",
    *(f'{n},{100 + n},"Book, {n}",Author {n},{1990 + n}.0,eng' for n in range(19)),
    "19,119,Livre,Émile Zola,,",
]
TAGS = "tag_id,tag_name\n1,sci-fi\n2,sci--fi\n3,to-read\n4,rare\n5,every\n6,手机\n7,2014\n8,--\n"
PAIRS = [
    *((100 + n, 1, 7) for n in range(5)),
    (100, 2, 1_000),  # the same words as tag 1
    (101, 1, 3),  # a pair twice
    (106, 1, 0),
    (107, 1, -1),
    (999, 1, 4),  # no such book
    (100, 99, 4),  # no such tag
    *((100 + n, tag, 5) for n in range(8) for tag in (3, 7, 8)),
    *((100 + n, 4, 5) for n in range(4)),
    *((100 + n, 5, 5) for n in range(11)),
    *((100 + n, 6, 1) for n in range(10)),
]


@pytest.fixture
def library(tmp_path):
    folder = tmp_path / "goodbooks"
    folder.mkdir()
    (folder / "books.csv").write_text("\n".join(BOOKS), encoding="utf-8")
    (folder / "tags.csv").write_text(TAGS, encoding="utf-8")
    lines = ["goodreads_book_id,tag_id,count", *(",".join(map(str, row)) for row in PAIRS)]
    (folder / "book_tags.csv").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_tags_become_queries_and_counts_become_clicks(library):
    rows = read_goodbooks(library).clicks.to_pylist()
    clicks = {(row["query"], row["item_id"]): row["clicks"] for row in rows}
    # ceil(log2(8)) = 3, and ceil(log2(1001)) = 10 where two tags have the same words.
    assert clicks == {
        **{("sci fi", str(100 + n)): 3 for n in range(5)},
        ("sci fi", "100"): 10,
        **{("手机", str(100 + n)): 1 for n in range(10)},
    }
    assert len(clicks) == len(rows)


def test_every_book_is_in_the_catalogue(library):
    catalogue = read_goodbooks(library).catalogue
    assert catalogue.column_names == ["item_id", "title", "authors", "year", "language"]
    rows = [tuple(row.values()) for row in catalogue.to_pylist()]
    assert len(rows) == 20
    assert rows[3] == ("103", "Book, 3", "Author 3", "1993", "eng")
    assert rows[19] == ("119", "Livre", "Émile Zola", "", "")


def test_an_archive_beside_is_read(library):
    expected = read_goodbooks(library).clicks
    with zipfile.ZipFile(library / "book_tags.csv.zip", "w") as archive:
        archive.write(library / "book_tags.csv", "book_tags.csv")
    (library / "book_tags.csv").unlink()
    assert read_goodbooks(library).clicks.equals(expected)


def test_the_command_writes_tables_and_a_config_that_fits(library, tmp_path, capsys, monkeypatch):
    """A run works beside the tables wherever it is started: the paths are absolute."""
    monkeypatch.chdir(tmp_path)
    out = tmp_path / "out"
    assert run("import", "goodbooks", library, "--out=out") == 0
    assert capsys.readouterr().out.split()[:6] == ["books", "20", "queries", "2", "pairs", "15"]
    config = Config.load(out / "pebr.yaml")
    assert config.data.click_log == str(out / "clicks" / "*.parquet")
    assert config.data.catalogue == str(out / "catalogue" / "*.parquet")
    assert config.pipeline.root == str(out / "run")
    assert config.pipeline.releases == str(out / "releases")
    names = pq.read_table(out / "catalogue" / "catalogue.parquet").column_names
    features = config.features
    assert {*features.item_text, *features.item_categories, "item_id"} <= set(names)
    assert pq.read_table(out / "clicks" / "clicks.parquet").num_rows == 15


@pytest.mark.parametrize(
    ("name", "content", "received"),
    [
        ("tags.csv", None, "No such file or directory"),
        ("tags.csv", "", "the columns none"),
        ("tags.csv", "id,name\n1,a\n", "the columns id, name"),
        ("tags.csv", "tag_id,tag_name\n", "no rows"),
        ("tags.csv", "tag_id,tag_name\n1\n", "a row that is too short"),
        ("books.csv", "tag_id,tag_name\n1,a\n", "the columns tag_id, tag_name"),
        ("book_tags.csv", "goodreads_book_id,tag_id,count\n1,1,many\n", "invalid literal"),
    ],
)
def test_a_file_that_is_not_what_it_should_be(library, tmp_path, name, content, received):
    (library / name).unlink()
    if content is not None:
        (library / name).write_text(content)
    with pytest.raises(UserError, match=rf"must hold {name} of goodbooks-10k .*{received}"):
        write_goodbooks(library, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_library_without_a_query(library):
    (library / "tags.csv").write_text("tag_id,tag_name\n3,to-read\n")
    with pytest.raises(UserError, match=r"must have tags on 5 books or more\. Received: none\."):
        read_goodbooks(library)
