"""The attributes that items of the synthetic shop can have, and their values.

A value's words never stand in the name of a department, category or brand, and a value belongs to
one name: an item that is `10kg` has the weight 10kg, whatever its category.
"""

from dataclasses import dataclass

SLOTS = 4  # The most attributes that a category has.
VALUES = 12  # The most values that an attribute has.


@dataclass(frozen=True)
class Attribute:
    """A property of the items of a category.

    Attributes:
      name: What it is called.
      values: What it can be, the most common first.
      by_model: All items of a model share the value; otherwise it tells the model's items apart.
      share: How many of the models have it at all.
      leading: It stands before the category's name in a title, otherwise after it.
    """

    name: str
    values: tuple[str, ...]
    by_model: bool = False
    share: float = 1.0
    leading: bool = False


def _variant(name: str, values: str) -> Attribute:
    return Attribute(name, tuple(values.split(", ")))


def _model(name: str, values: str, share: float = 1.0, leading: bool = False) -> Attribute:
    return Attribute(name, tuple(values.split(", ")), by_model=True, share=share, leading=leading)


COLOUR = _variant(
    "colour",
    "black, white, blue, silver, red, green, grey, gold, pink, purple, beige, yellow",
)
FINISH = _variant("colour", "white, silver, black, stainless, graphite, ivory, red, mint")
STORAGE = _variant("storage", "128gb, 256gb, 64gb, 512gb, 1tb")
DISK = _variant("storage", "512gb, 1tb, 256gb, 2tb")
CAPACITY = _variant("storage", "1tb, 2tb, 512gb, 4tb, 8tb, 16tb")
RAM = _variant("memory", "16gb ram, 8gb ram, 32gb ram, 64gb ram")
STICKS = _variant("memory", "16gb ddr5, 32gb ddr5, 8gb ddr4, 64gb ddr5")
NETWORK = _model("network", "5g, 4g", leading=True)
TELEVISION_SIZE = _variant("screen", "55inch, 65inch, 43inch, 50inch, 75inch, 32inch, 85inch")
MONITOR_SIZE = _variant("screen", "27inch, 24inch, 32inch, 34inch, 49inch")
LAPTOP_SIZE = _model("screen", "15inch, 14inch, 13inch, 16inch, 17inch")
RESOLUTION = _model("resolution", "4k, full hd, 8k", leading=True)
PANEL = _model("panel", "oled, qled, lcd", leading=True)
REFRESH = _model("refresh", "60hz, 144hz, 120hz, 165hz, 240hz")
LINK = _model("link", "wireless, wired", leading=True)
CANCELLING = _model("sound", "noise cancelling", share=0.4, leading=True)
WATERPROOF = _model("protection", "waterproof", share=0.4, leading=True)
PROCESSOR = _model("processor", "i5, i7, ryzen5, i9, ryzen7, i3")
SENSOR = _model("sensor", "24mp, 33mp, 20mp, 45mp, 61mp")
CASE_SIZE = _variant("case size", "44mm, 40mm, 41mm, 45mm, 49mm")
BATTERY = _variant("battery", "10000mah, 20000mah, 5000mah, 30000mah")
LAYOUT = _model("switch", "mechanical, membrane, optical", leading=True)
WIFI = _model("standard", "wifi6, wifi5, wifi7", leading=True)
SMART = _model("control", "smart", share=0.35, leading=True)
INVERTER = _model("motor", "inverter", share=0.4, leading=True)
LITRES = _variant("volume", "300l, 400l, 200l, 500l, 600l")
LOAD = _variant("weight", "8kg, 7kg, 9kg, 10kg, 12kg")
JUG = _variant("volume", "1.5l, 1.7l, 1l, 2l, 3l, 5l")
POWER = _variant("power", "1000w, 800w, 1500w, 2000w, 600w")
ROOM = _model("room", "for 20m2, for 30m2, for 50m2")
PLACES = _model("places", "14 places, 12 places, 9 places")
GENDER = _model("for whom", "women, men, kids", leading=True)
SIZE = _variant("size", "medium, large, small, xl, xs, xxl")
SHOE_SIZE = _variant("size", "eu42, eu41, eu40, eu43, eu39, eu38, eu44, eu37, eu45, eu36")
FABRIC = _model("fabric", "cotton, polyester, linen, wool, fleece", leading=True)
FIT = _model("fit", "regular fit, slim fit, loose fit")
LEATHER = _model("material", "leather, canvas, nylon, suede", leading=True)
WOOD = _variant("wood", "oak, walnut, pine, birch, ash, bamboo")
COVER = _variant("cover", "grey fabric, beige fabric, brown leather, green velvet, black leather")
SEATS = _model("seats", "3 seater, 2 seater, corner, 4 seater", leading=True)
BED_SIZE = _variant("size", "queen, double, king, single")
FIRMNESS = _model("firmness", "firm, soft, balanced")
WIDTH = _variant("width", "120cm, 140cm, 80cm, 160cm, 100cm, 180cm")
SHADE = _variant("light", "warm light, daylight, dimmable, rgb")
WEIGHT = _variant("weight", "10kg, 5kg, 2kg, 20kg, 16kg, 24kg")
WHEEL = _variant("wheel", "29inch wheels, 28inch wheels, 26inch wheels, 24inch wheels")
ELECTRIC = _model("drive", "electric", share=0.3, leading=True)
PERSONS = _variant("persons", "2 person, 4 person, 3 person, 6 person")
DEPTH = _variant("depth", "25cm, 20cm, 30cm, 18cm")
THICKNESS = _variant("thickness", "6mm, 4mm, 8mm, 10mm")
SKIN = _model("skin", "dry skin, oily skin, sensitive skin")
BOTTLE = _variant("bottle", "50ml, 100ml, 30ml, 200ml, 250ml, 500ml")
SCENT = _variant("scent", "lavender, vanilla, rose, citrus, coconut, unscented")
TONE = _variant("tone", "nude, coral, ruby, berry, plum, peach, mauve, rust, copper, wine")
ORGANIC = _model("origin", "organic", share=0.35, leading=True)
AGE = _model("age", "age 3, age 5, age 8, age 12")
PIECES = _variant("pieces", "100 pieces, 250 pieces, 500 pieces, 1000 pieces, 2000 pieces")
PLAYERS = _variant("edition", "travel edition, party edition, family edition, junior edition")
VOLTAGE = _variant("voltage", "18v, 12v, 20v, 36v, 40v")
BRUSHLESS = _model("motor", "brushless", share=0.4, leading=True)
PACK = _variant("pack", "2 pack, 4 pack, 6 pack, 12 pack, 24 pack")
STAGE = _variant("stage", "newborn, stage 1, stage 2, stage 3, stage 4, stage 5")
ISOFIX = _model("mount", "isofix", share=0.5, leading=True)
TASTE = _variant("taste", "chicken, beef, salmon, turkey, lamb, duck")
BAG = _variant("weight", "2kg, 5kg, 10kg, 1kg, 15kg")
BREED = _model("for whom", "adult, puppy, senior", leading=True)
RIM = _variant("rim", "r16, r17, r15, r18, r19, r20")
SEASON = _model("season", "summer, winter, all season", leading=True)
VISCOSITY = _variant("grade", "5w30, 5w40, 10w40, 0w20")
CANISTER = _variant("volume", "5l, 4l, 1l, 20l")
HEIGHT = _variant("height", "2m, 3m, 4m, 6m")
LENGTH = _variant("length", "20m, 30m, 15m, 50m")
GRAMS = _variant("grams", "500g, 250g, 1000g, 200g")
ROAST = _model("roast", "dark roast, medium roast, light roast")
COCOA = _model("cocoa", "milk, 70 percent, 85 percent")
