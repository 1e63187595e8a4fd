"""Settings of what goes in: files, splits, strata, and the features made of the columns."""

from dataclasses import replace
from typing import Literal

from pebr_tf.config.section import Section
from pebr_tf.config.setting import AUTO, setting

MAX_SEED = 2**31 - 1
# Range of a distance between two distributions: L-infinity for text, Jensen-Shannon for numbers.
_DISTANCE = "(0, 1]"


class Data(Section):
    """Where the click log and the catalogue are, and what their columns are called."""

    click_log: str = setting("data/clicks/*", "Path or glob; {SPAN} or {YYYY}-{MM}-{DD} for spans")
    catalogue: str | None = setting(
        "data/catalogue/*",
        "Path or glob, one row per item; null: the click log has the item columns",
    )
    format: Literal["auto", "csv", "tsv", "jsonl", "parquet"] = setting(
        "auto", "Format of both; auto: by the file name, with or without .gz"
    )
    query_column: str = setting("query", "Click log column of the query")
    item_column: str = setting("item_id", "Column of the item id, in click log and catalogue")
    clicks_column: str | None = setting(
        "clicks", "Optional column with the number of clicks per row (default 1); null: not used"
    )
    timestamp_column: str | None = setting(
        "timestamp", "Optional column with the time of the click; null: not used"
    )
    payload_columns: tuple[str, ...] = setting(
        ("title",), "Catalogue columns that the release returns with each item", distinct=True
    )
    reject_limit: float = setting(
        0.01, "Largest share of rejected rows; above it the run stops", "[0, 1]"
    )
    statistics_rows: int = setting(
        10_000,
        "Random clicks per split that the statistics are computed from",
        "[100, 10_000_000]",
    )
    schema: str | None = setting(
        None, "A reviewed schema, pbtxt; null: inferred from the training split"
    )
    drift_limit: float | None = setting(
        0.3, "Largest drift of a column since the last accepted run; null: no limit", _DISTANCE
    )
    skew_limit: float | None = setting(
        0.3,
        "Largest skew of a column between train and a held-out split; null: no limit",
        _DISTANCE,
    )


class Split(Section):
    """Which clicks train, which tune the cut-off, which test; what is not held out trains."""

    by: Literal["pair", "time", "query"] = setting(
        "pair", "Hold out hashed pairs, the latest clicks or whole queries"
    )
    calibrate: float = setting(0.1, "Share that tunes the cut-off", "(0, 1)")
    test: float = setting(0.1, "Share that tests the release", "(0, 1)")
    seed: int = setting(0, "Another seed hashes into another split", f"[0, {MAX_SEED}]")

    def check(self) -> None:
        self.require(
            self.calibrate + self.test < 1,
            "calibrate plus test",
            "be below 1, to leave a share for train",
            f"{self.calibrate} + {self.test}",
        )


class Strata(Section):
    """Head, torso and tail queries, by their share of the training clicks, most frequent first."""

    head: float = setting(0.5, "Click share of the head queries", "(0, 1)")
    torso: float = setting(0.3, "Click share of the torso queries", "(0, 1)")
    tail: float = setting(0.2, "Click share of the tail queries", "(0, 1)")
    min_queries: int = setting(
        150,
        "Fewest queries in head and in torso, at most a third of all queries each",
        "[0, 1_000_000]",
    )

    def check(self) -> None:
        # Shares written with a few decimals need not sum to 1 in binary.
        self.require(
            abs(self.head + self.torso + self.tail - 1) < 1e-6,
            "head plus torso plus tail",
            "be 1",
            f"{self.head} + {self.torso} + {self.tail}",
        )


class Features(Section):
    """What the towers see of a query and of an item."""

    query_kind: Literal["text", "id"] = setting(
        "text", "Queries are text to cut into tokens, or ids to look up whole"
    )
    item_text: tuple[str, ...] = setting(("title",), "Catalogue columns of text", distinct=True)
    item_categories: tuple[str, ...] = setting(
        (), "Catalogue columns of categories, looked up whole", distinct=True
    )
    item_numbers: tuple[str, ...] = setting((), "Catalogue columns of numbers", distinct=True)
    # Off: an id says nothing about an item that the next catalogue adds, and the index is
    # refreshed for such items without training anew.
    item_id: bool = setting(False, "Also embed the item id; helps known items, not new ones")
    lowercase: bool = setting(True, "Convert all text to lower case")
    word_ngrams: tuple[int, ...] = setting(
        (1, 2), "Words in a token; [] for none", "[1, 5]", increasing=True
    )
    character_ngrams: tuple[int, ...] = setting(
        (3,), "Characters in a token; [] for none", "[1, 8]", increasing=True
    )
    max_tokens: int = setting(64, "Most tokens per text; further ones are dropped", "[1, 4096]")
    vocabulary_size: int = setting(
        AUTO, "Most frequent tokens with a vector of their own", "[1, 100_000_000]", automatic=True
    )
    min_token_count: int = setting(
        2, "Rarer tokens go to the out-of-vocabulary buckets", "[1, 1_000_000]"
    )
    oov_buckets: int = setting(
        1_000, "Hash buckets for tokens out of the vocabulary", "[1, 10_000_000]"
    )

    @property
    def characters(self) -> int:
        """Characters of a text that are read: more than the mean word and its space per token."""
        return 10 * self.max_tokens

    def words(self) -> "Features":
        """The same with single words as the only tokens."""
        return replace(self, word_ngrams=(1,), character_ngrams=())

    def check(self) -> None:
        self.require(
            bool(self.item_text or self.item_categories or self.item_numbers or self.item_id),
            "item_text",
            "name a column when the item has no other feature",
        )
        has_text = self.query_kind == "text" or self.item_text
        self.require(
            bool(self.word_ngrams or self.character_ngrams or not has_text),
            "word_ngrams",
            "hold a size when character_ngrams is empty",
        )
