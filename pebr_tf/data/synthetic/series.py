"""The words that model names begin with, as `mate` in `mate50pro`: each belongs to one line."""

import numpy as np

from pebr_tf.data.synthetic.vocabulary import DEPARTMENTS

SERIES_PER_LINE = 2

# Well-known names, so that the demo looks like a real shop.
FLAGSHIPS = {
    ("huawei", "phone"): "mate",
    ("samsung", "phone"): "galaxy",
    ("apple", "phone"): "iphone",
    ("xiaomi", "phone"): "redmi",
    ("google", "phone"): "pixel",
    ("sony", "phone"): "xperia",
    ("motorola", "phone"): "razr",
    ("apple", "laptop"): "macbook",
    ("lenovo", "laptop"): "thinkpad",
    ("dell", "laptop"): "latitude",
    ("asus", "laptop"): "zenbook",
    ("microsoft", "laptop"): "surface",
    ("apple", "tablet"): "ipad",
    ("amazon", "tablet"): "kindle",
    ("sony", "television"): "bravia",
    ("apple", "earbuds"): "airpods",
    ("garmin", "smartwatch"): "fenix",
    ("canon", "camera"): "eos",
    ("nike", "running shoes"): "pegasus",
    ("nike", "sneakers"): "jordan",
    ("adidas", "sneakers"): "samba",
    ("ikea", "bookcase"): "billy",
    ("ikea", "wardrobe"): "pax",
    ("irobot", "vacuum cleaner"): "roomba",
}

_BEGINNINGS = (
    "al ar bel bri cal cor dal del el en fal fen gal hel in jal kal kel lan lor lu mar mel mi nor "
    "or pal per qua ran ren sal sel sol tal ter tor ul val vel ver vi wil xan yor zan zel zen"
)
_ENDINGS = (
    "adis ago amo andra anto ara aris aven ea edo elan elo enda enio ento era estra eva ia idan "
    "igo ilia imo inda ino ira isto iva ix odan ola olis ona onix ora oris osa otto ova udo ula "
    "umo una ura usto uva yra"
)


def series_words(generator: np.random.Generator) -> tuple[str, ...]:
    """Draws `SERIES_PER_LINE` words per line, in the order of the lines, all different."""
    lines = [
        (brand, category.name)
        for department in DEPARTMENTS
        for category in department.categories
        for brand in category.brands
    ]
    known = set(FLAGSHIPS.values())
    invented = [
        word
        for word in (
            beginning + ending for beginning in _BEGINNINGS.split() for ending in _ENDINGS.split()
        )
        if word not in known
    ]
    words = iter(generator.permutation(invented)[: SERIES_PER_LINE * len(lines)].tolist())
    return tuple(
        FLAGSHIPS.get(line, next(words)) if number == 0 else next(words)
        for line in lines
        for number in range(SERIES_PER_LINE)
    )
