"""Small click logs, each awkward in one way: `LOGS[name](folder)` writes its files."""

import csv
import datetime
import random
import zlib

WORDS = (
    *("red", "blue", "green", "tea", "pot", "lamp", "chair", "desk"),
    *("sofa", "rug", "cup", "fork", "bowl", "vase", "mirror", "clock"),
)
GREEK = ["κόκκινο", "μπλε", "πράσινο", "τσάι", "δοχείο", "λάμπα", "καρέκλα", "γραφείο"]
CHINESE = ["红色", "蓝色", "绿色", "茶壶", "台灯", "椅子", "书桌", "沙发"]
BEGIN = datetime.datetime(2024, 3, 1, tzinfo=datetime.timezone.utc)
# The same moment in the forms of five logs.
TIMES = {
    "iso_zone": lambda moment: moment.isoformat(),
    "iso": lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S"),
    "date": lambda moment: moment.strftime("%Y-%m-%d"),
    "seconds": lambda moment: str(int(moment.timestamp())),
    "milliseconds": lambda moment: str(int(1_000 * moment.timestamp())),
    "bigquery": lambda moment: moment.strftime("%Y-%m-%d %H:%M:%S UTC"),
    "day": lambda moment: moment.strftime("%Y%m%d"),
    "microseconds": lambda moment: str(int(1_000_000 * moment.timestamp())),
    "fractions": lambda moment: f"{moment.timestamp():.3f}",
    "day_first": lambda moment: moment.strftime("%d/%m/%Y %H:%M"),
}


class Log:
    """Rows of clicks and of items; a query is two words, and its items have both."""

    def __init__(self, queries=240, clicks=6_000, words=WORDS, items=400, giant=1):
        self.random = random.Random(0)
        self.titles = {f"i{n}": " ".join(self.random.sample(words, 3)) for n in range(items)}
        pairs = [f"{a} {b}" for a in words for b in words if a != b]
        self.queries = [pairs[n % len(pairs)] for n in range(queries)]
        self.fitting = {}
        self.header = ["query", "item_id"]
        weights = [giant if n == 0 else 1 / (n + 1) for n in range(queries)]
        self.rows = [
            [query, self.relevant(query)]
            for query in self.random.choices(self.queries, weights, k=clicks)
        ]

    def relevant(self, query):
        if query not in self.fitting:
            wanted = set(query.split())
            found = [item for item, title in self.titles.items() if wanted <= set(title.split())]
            self.fitting[query] = found or list(self.titles)
        return self.random.choice(self.fitting[query])

    def add(self, **columns):
        """Columns by name: a value for all rows, or a function of the number and the row."""
        self.header += columns
        for number, row in enumerate(self.rows):
            row += [each(number, row) if callable(each) else each for each in columns.values()]
        return self

    def rewritten(self, header, row):
        """Other columns; `row` makes them from the number of a row, its query and its item."""
        self.header, self.rows = header, [row(n, *each) for n, each in enumerate(self.rows)]
        return self

    def write(self, folder, catalogue=True, item_column="item_id"):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "clicks.csv", self.header, self.rows)
        if not catalogue:
            return folder / "clicks.csv", None
        rows = [[item, title] for item, title in self.titles.items()]
        _write(folder / "items.csv", [item_column, "title"], rows)
        return folder / "clicks.csv", folder / "items.csv"


def _write(path, header, rows):
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def long_texts(folder):
    log = Log()
    for item, title in log.titles.items():
        filler = (f"detail{log.random.randrange(500)}" for _ in range(220))
        log.titles[item] = " ".join([title, *filler])
    return log.write(folder)


def one_click_per_query(folder):
    log = Log(clicks=0)
    for n in range(4_000):
        query = " ".join(log.random.sample(WORDS, 2))
        log.rows.append([f"{query} {n}", log.relevant(query)])
    return log.write(folder)


def browser(n, _):
    return f"Mozilla/{n % 7} (X11; Linux x86_64) Firefox/{n % 11}"


def user_agents(folder):
    log = Log()
    log.add(text=lambda _, row: row[0], ua=browser, label=lambda n, _: n % 2)
    log.add(clicked_at=lambda n, _: TIMES["bigquery"](BEGIN + datetime.timedelta(minutes=n)))
    log.add(meta=lambda n, _: f'{{"a": {n % 3}, "b": "red tea"}}')
    header = ["query_id", *log.header[1:]]
    log.rewritten(header, lambda _, query, *rest: [log.queries.index(query), *rest])
    return log.write(folder, catalogue=False)


def texts_in_the_log(folder):
    log = Log()
    log.add(ua=browser, produit=lambda _, row: log.titles[row[1]], shop="The Green Shop")
    return log.write(folder, catalogue=False)


def impressions(folder):
    clicked = Log().add(position=lambda n, _: n % 10, clicked=lambda n, _: str(n % 4 == 0).lower())
    return clicked.write(folder)


def float_ids(folder):
    log = Log()
    log.titles = {item[1:]: title for item, title in log.titles.items()}
    return log.rewritten(log.header, lambda _, q, item: [q, f"{item[1:]}.0"]).write(folder)


def two_ids(folder):
    log = Log().rewritten(["query", "item_id", "sku"], lambda n, q, item: [q, f"v{n}", item])
    return log.write(folder, item_column="sku")


def without_catalogue(header, row):
    return lambda folder: Log().rewritten(header, row).write(folder, catalogue=False)


def with_times(form):
    def row(n, query, item):
        """Moments of 60 days, a whole minute each."""
        return [query, item, TIMES[form](BEGIN + datetime.timedelta(minutes=n * 86_400 // 6_000))]

    return lambda folder: Log().rewritten(["query", "item_id", "time"], row).write(folder)


def empty_columns(folder):
    log = Log().add(note=1)
    log.header += ["title", "title", "", ""]
    log.rows = [[*row, "a b", "c d", "", ""] for row in log.rows]
    return log.write(folder)


def clicked_equally(folder):
    log = Log(clicks=0)
    some = log.queries
    log.rows = [[query, item] for n, item in enumerate(log.titles) for query in some[n % 20 :: 20]]
    return log.write(folder)


LOGS = {
    "user_agents": user_agents,
    "texts_in_the_log": texts_in_the_log,
    "impressions": impressions,
    "float_ids": float_ids,
    "two_ids": two_ids,
    "row_numbers": without_catalogue(
        ["id", "query", "clicked_url"], lambda n, query, item: [n, query, f"https://shop/{item}"]
    ),
    "empty_columns": empty_columns,
    "clicked_equally": clicked_equally,
    "giant_query": lambda folder: Log(giant=100).write(folder),
    "few_items": lambda folder: Log(items=200).write(folder),
    "query_ids": without_catalogue(
        ["query_id", "product_id"], lambda _, query, item: [zlib.crc32(query.encode()), item]
    ),
    "no_item_text": without_catalogue(["search_term", "asin"], lambda _, *pair: pair),
    "long_texts": long_texts,
    "one_click_per_query": one_click_per_query,
    "few_queries": lambda folder: Log(queries=50, clicks=3_000).write(folder),
    "non_latin": lambda folder: Log(words=GREEK + CHINESE).write(folder),
    **{f"times_{form}": with_times(form) for form in TIMES},
}
