"""What `pebr import goodbooks` writes goes through the component as it is."""

import pytest
from example_gen_runs import SPLITS, csv_of, run

from pebr_tf.config import Config
from pebr_tf.data.goodbooks import write_goodbooks

pytestmark = pytest.mark.slow

BOOKS = 40


def write_library(folder):
    """Twenty tags on nineteen or twenty books each; a book without a year."""
    books = [(n, f"Book {n}", f"Author {n % 7}", f"{1950 + n}.0", "eng") for n in range(BOOKS)]
    books[3] = (3, "Livre", "Émile Zola", "", "")
    pairs = [(n, tag, 7) for n in range(BOOKS) for tag in range(20) if (n + tag) % 2 and n != tag]
    tables = {
        "goodreads_book_id,title,authors,original_publication_year,language_code": books,
        "tag_id,tag_name": [(n, f"genre-{chr(97 + n)}") for n in range(20)],
        "goodreads_book_id,tag_id,count": pairs,
    }
    folder.mkdir()
    for name, (header, rows) in zip(("books", "tags", "book_tags"), tables.items(), strict=True):
        (folder / f"{name}.csv").write_text(csv_of(rows, header), encoding="utf-8")
    return pairs


def test_imported_tables_become_examples(tmp_path):
    pairs = write_library(tmp_path / "library")
    data = write_goodbooks(tmp_path / "library", tmp_path / "data")
    left = run(tmp_path, Config.load(tmp_path / "data" / "pebr.yaml"))
    counts = {name: left.accounting[name] for name in ("clicks", "items")}
    assert [(each["read"], each["rejected"]) for each in counts.values()] == [
        (len(pairs), 0),
        (BOOKS, 0),
    ]
    assert data.clicks.num_rows == len(pairs)
    assert all(left.accounting["splits"][name] > 0 for name in SPLITS)
    [found] = [
        click
        for split in SPLITS
        for click in left.sample(split)
        if (click["query"], click["item_id"]) == (b"genre a", b"3")
    ]
    # 3 clicks are ceil(log2(1 + 7)).
    assert found == {
        "query": b"genre a",
        "item_id": b"3",
        "clicks": 3,
        "timestamp": 0,
        "title": b"Livre",
        "authors": "Émile Zola".encode(),
        "language": b"",
        "year": b"",
    }
