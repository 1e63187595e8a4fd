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
    "day_first": lambda moment: moment.strftime("%d/%m/%Y %H:%M"),
}


def moments(count):
    """Moments of 60 days, a whole minute each."""
    return [BEGIN + datetime.timedelta(minutes=n * 86_400 // count) for n in range(count)]


class Log:
    """Rows of clicks and of items; a query is two words, and its items have both."""

    def __init__(self, queries=240, clicks=6_000, words=WORDS):
        self.random = random.Random(0)
        self.titles = {f"i{n}": " ".join(self.random.sample(words, 3)) for n in range(400)}
        pairs = [f"{a} {b}" for a in words for b in words if a != b]
        self.queries = [pairs[n % len(pairs)] for n in range(queries)]
        self.fitting = {}
        self.header = ["query", "item_id"]
        weights = [1 / (n + 1) for n in range(queries)]
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

    def write(self, folder, catalogue=True):
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / "clicks.csv", self.header, self.rows)
        if not catalogue:
            return folder / "clicks.csv", None
        rows = [[item, title] for item, title in self.titles.items()]
        _write(folder / "items.csv", ["item_id", "title"], rows)
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


LOGS = {
    "query_ids": query_ids,
    "no_item_text": no_item_text,
    "long_texts": long_texts,
    "one_click_per_query": one_click_per_query,
    "few_queries": lambda folder: Log(queries=50, clicks=3_000).write(folder),
    "non_latin": lambda folder: Log(words=GREEK + CHINESE).write(folder),
    **{f"times_{form}": with_times(form) for form in TIMES},
}
