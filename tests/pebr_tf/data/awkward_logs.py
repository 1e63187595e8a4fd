"""Small click logs, each awkward in one way: `LOGS[name](folder)` writes its files."""

import csv
import datetime
import random

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


def moments(count):
    """Moments of 60 days, a whole minute each."""
    return [BEGIN + datetime.timedelta(minutes=n * 86_400 // count) for n in range(count)]


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


def query_ids(folder):
    log = Log()
    number = {query: 1_000 + n for n, query in enumerate(log.queries)}
    log.header = ["query_id", "product_id"]
    log.rows = [[number[query], item] for query, item in log.rows]
    return log.write(folder, catalogue=False)


def no_item_text(folder):
    log = Log()
    log.header = ["search_term", "asin"]
    return log.write(folder, catalogue=False)


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


def with_times(form):
    def write(folder):
        log = Log()
        log.header = ["query", "item_id", "time"]
        written = map(TIMES[form], moments(len(log.rows)))
        log.rows = [[*row, moment] for row, moment in zip(log.rows, written, strict=True)]
        return log.write(folder)

    return write


def browser(n, _):
    return f"Mozilla/{n % 7} (X11; Linux x86_64) Firefox/{n % 11}"


def user_agents(folder):
    log = Log()
    log.header = ["query_id", "item_id"]
    number = {query: n for n, query in enumerate(log.queries)}
    log.add(text=lambda _, row: row[0], ua=browser, label=lambda n, _: n % 2)
    log.add(clicked_at=lambda n, _: TIMES["bigquery"](BEGIN + datetime.timedelta(minutes=n)))
    log.add(meta=lambda n, _: f'{{"a": {n % 3}, "b": "red tea"}}')
    log.rows = [[number[query], *rest] for query, *rest in log.rows]
    return log.write(folder, catalogue=False)


def texts_in_the_log(folder):
    log = Log().add(ua=browser)
    log.add(produit=lambda _, row: log.titles[row[1]], shop="The Green Shop")
    return log.write(folder, catalogue=False)


def impressions(folder):
    clicked = Log().add(position=lambda n, _: n % 10, clicked=lambda n, _: str(n % 4 == 0).lower())
    return clicked.write(folder)


def float_ids(folder):
    log = Log()
    log.titles = {item[1:]: title for item, title in log.titles.items()}
    log.rows = [[query, f"{item[1:]}.0"] for query, item in log.rows]
    return log.write(folder)


def two_ids(folder):
    log = Log().add(sku=lambda _, row: row[1])
    log.rows = [[query, f"v{n}", sku] for n, (query, _, sku) in enumerate(log.rows)]
    return log.write(folder, item_column="sku")


def row_numbers(folder):
    log = Log()
    log.header = ["id", "query", "clicked_url"]
    log.rows = [[n, query, f"https://shop/{item}"] for n, (query, item) in enumerate(log.rows)]
    return log.write(folder, catalogue=False)


def empty_columns(folder):
    log = Log().add(note=1)
    log.header += ["title", "title", "", ""]
    log.rows = [[*row, "a b", "c d", "", ""] for row in log.rows]
    return log.write(folder)


def clicked_equally(folder):
    log = Log(clicks=0)
    log.rows = [
        [query, item] for n, item in enumerate(log.titles) for query in log.queries[n % 20 :: 20]
    ]
    return log.write(folder)


LOGS = {
    "user_agents": user_agents,
    "texts_in_the_log": texts_in_the_log,
    "impressions": impressions,
    "float_ids": float_ids,
    "two_ids": two_ids,
    "row_numbers": row_numbers,
    "empty_columns": empty_columns,
    "clicked_equally": clicked_equally,
    "giant_query": lambda folder: Log(giant=100).write(folder),
    "few_items": lambda folder: Log(items=200).write(folder),
    "query_ids": query_ids,
    "no_item_text": no_item_text,
    "long_texts": long_texts,
    "one_click_per_query": one_click_per_query,
    "few_queries": lambda folder: Log(queries=50, clicks=3_000).write(folder),
    "non_latin": lambda folder: Log(words=GREEK + CHINESE).write(folder),
    **{f"times_{form}": with_times(form) for form in TIMES},
}
