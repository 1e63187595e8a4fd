"""The words of the synthetic shop: departments, categories, brands and model names.

The words of a query say which constraints it has: no word stands for two kinds of thing, and inside
a category no two attributes share a value. So two queries with different constraints never read the
same.
"""

from dataclasses import dataclass

from pebr_tf.data.synthetic import attributes as a


@dataclass(frozen=True)
class Category:
    """A kind of item: its name, the brands that make it (the largest first), its attributes."""

    name: str
    brands: tuple[str, ...]
    attributes: tuple[a.Attribute, ...]


@dataclass(frozen=True)
class Department:
    """Categories (the largest first) that share a style of model names, as in `mate50pro`."""

    name: str
    suffixes: tuple[str, ...]
    categories: tuple[Category, ...]


def _category(name: str, *attributes: a.Attribute, brands: str) -> Category:
    return Category(name, tuple(brands.split()), attributes)


TECHNICAL = ("", "pro", "plus", "max", "ultra", "lite", "mini", "neo", "se")
DOMESTIC = ("", "classic", "comfort", "deluxe", "eco", "prime", "compact", "studio", "select")
ACTIVE = ("", "sport", "urban", "trail", "flex", "evo", "edge", "core", "swift")

_PHONES = "samsung apple huawei xiaomi oppo honor google motorola oneplus realme nokia sony"
_LAPTOPS = "lenovo hp dell asus acer apple msi huawei samsung microsoft"
_LARGE = "bosch samsung lg siemens haier whirlpool electrolux beko miele midea"
_SMALL = "philips tefal braun kenwood delonghi bosch ninja russell tower smeg"
_SOFAS = "ikea westelm habitat bolia hay muuto natuzzi wayfair castlery article"
_APPAREL = "zara uniqlo hm levis gap mango esprit benetton gant superdry wrangler"
_SPORT = "nike adidas puma reebok asics newbalance underarmour skechers fila mizuno"
_OUTDOOR = "patagonia columbia thenorthface salomon mammut jackwolfskin deuter osprey vaude"
_SKINCARE = "nivea loreal garnier cerave neutrogena olay clinique vichy eucerin kiehls"
_MAKEUP = "maybelline nyx revlon mac essence loreal clinique rimmel bourjois"
_TOYS = "hasbro mattel ravensburger playmobil fisherprice vtech simba clementoni"
_TOOLS = "bosch makita dewalt milwaukee stanley ryobi metabo einhell hilti festool"
_BABY = "chicco pampers maxicosi cybex britax joie nuna graco stokke bugaboo"
_PETS = "purina royalcanin whiskas pedigree hills acana orijen eukanuba iams josera"
_CARS = "michelin bridgestone continental goodyear pirelli hankook dunlop yokohama nokian"
_GARDEN = "gardena husqvarna stihl fiskars karcher wolfgarten bosch makita einhell ryobi"
_FOOD = "nestle lavazza illy jacobs lindt twinings barilla milka dallmayr segafredo"

# fmt: off
DEPARTMENTS = (
    Department(
        "electronics",
        TECHNICAL,
        (
            _category("phone", a.NETWORK, a.STORAGE, a.COLOUR,
                      brands=_PHONES),
            _category("television", a.PANEL, a.RESOLUTION, a.TELEVISION_SIZE, a.SMART,
                      brands="samsung lg sony tcl hisense philips panasonic xiaomi toshiba"),
            _category("headphones", a.LINK, a.CANCELLING, a.COLOUR,
                      brands="sony bose sennheiser jbl apple beats samsung philips akg anker"),
            _category("smartwatch", a.NETWORK, a.WATERPROOF, a.CASE_SIZE, a.COLOUR,
                      brands="apple samsung garmin huawei xiaomi fitbit amazfit google honor"),
            _category("speaker", a.LINK, a.WATERPROOF, a.COLOUR,
                      brands="jbl sonos bose sony marshall harman anker philips lg"),
            _category("camera", a.SENSOR, a.WATERPROOF, a.COLOUR,
                      brands="canon nikon sony fujifilm panasonic olympus leica kodak"),
            _category("phone case", a.LEATHER, a.COLOUR,
                      brands="spigen otterbox uag samsung apple ringke nillkin baseus"),
            _category("power bank", a.LINK, a.BATTERY, a.COLOUR,
                      brands="anker baseus xiaomi belkin samsung ugreen romoss"),
            _category("earbuds", a.CANCELLING, a.WATERPROOF, a.COLOUR,
                      brands="apple samsung sony jabra xiaomi huawei nothing realme jbl"),
            _category("soundbar", a.LINK, a.SMART, a.COLOUR,
                      brands="samsung sony lg bose jbl sonos yamaha philips"),
        ),
    ),
    Department(
        "fashion",
        ACTIVE,
        (
            _category("dress", a.FABRIC, a.SIZE, a.COLOUR,
                      brands=_APPAREL),
            _category("shirt", a.GENDER, a.FABRIC, a.SIZE, a.COLOUR,
                      brands=_APPAREL),
            _category("jeans", a.GENDER, a.FIT, a.SIZE, a.COLOUR,
                      brands=_APPAREL),
            _category("jacket", a.GENDER, a.WATERPROOF, a.SIZE, a.COLOUR,
                      brands=f"{_OUTDOOR} zara levis gap"),
            _category("sneakers", a.GENDER, a.SHOE_SIZE, a.COLOUR,
                      brands=_SPORT),
            _category("boots", a.GENDER, a.LEATHER, a.SHOE_SIZE, a.COLOUR,
                      brands="timberland drmartens ugg clarks geox ecco caterpillar camper"),
            _category("handbag", a.LEATHER, a.COLOUR,
                      brands="coach guess fossil mango zara furla longchamp desigual"),
            _category("sweater", a.GENDER, a.FABRIC, a.SIZE, a.COLOUR,
                      brands=_APPAREL),
            _category("wallet", a.LEATHER, a.COLOUR,
                      brands="fossil guess coach bellroy tommy calvin samsonite"),
        ),
    ),
    Department(
        "computers",
        TECHNICAL,
        (
            _category("laptop", a.PROCESSOR, a.LAPTOP_SIZE, a.RAM, a.DISK,
                      brands=_LAPTOPS),
            _category("tablet", a.NETWORK, a.STORAGE, a.COLOUR,
                      brands="apple samsung lenovo huawei xiaomi microsoft honor amazon"),
            _category("monitor", a.RESOLUTION, a.REFRESH, a.MONITOR_SIZE, a.COLOUR,
                      brands="dell lg samsung asus benq aoc acer hp philips msi"),
            _category("keyboard", a.LINK, a.LAYOUT, a.COLOUR,
                      brands="logitech razer corsair keychron microsoft hyperx asus cherry"),
            _category("mouse", a.LINK, a.REFRESH, a.COLOUR,
                      brands="logitech razer steelseries microsoft corsair hp asus"),
            _category("printer", a.LINK, a.SMART, a.FINISH,
                      brands="hp canon epson brother xerox lexmark kyocera"),
            _category("router", a.WIFI, a.NETWORK, a.COLOUR,
                      brands="tplink asus netgear huawei linksys dlink zyxel xiaomi"),
            _category("ssd", a.CAPACITY, a.PACK,
                      brands="samsung crucial kingston sandisk seagate lexar adata"),
            _category("memory kit", a.STICKS, a.COLOUR,
                      brands="corsair kingston crucial gskill adata teamgroup"),
        ),
    ),
    Department(
        "appliances",
        DOMESTIC,
        (
            _category("refrigerator", a.INVERTER, a.SMART, a.LITRES, a.FINISH,
                      brands=_LARGE),
            _category("washing machine", a.INVERTER, a.SMART, a.LOAD, a.FINISH,
                      brands=_LARGE),
            _category("vacuum cleaner", a.LINK, a.SMART, a.POWER, a.FINISH,
                      brands="dyson miele philips rowenta bosch shark xiaomi irobot"),
            _category("coffee machine", a.SMART, a.JUG, a.FINISH,
                      brands="delonghi nespresso philips krups saeco jura melitta"),
            _category("microwave", a.INVERTER, a.POWER, a.FINISH,
                      brands="panasonic samsung lg sharp whirlpool bosch candy"),
            _category("air conditioner", a.INVERTER, a.ROOM, a.SMART, a.FINISH,
                      brands="daikin mitsubishi lg samsung gree midea toshiba hisense"),
            _category("dishwasher", a.INVERTER, a.PLACES, a.FINISH,
                      brands=_LARGE),
            _category("blender", a.POWER, a.FINISH,
                      brands=_SMALL),
            _category("kettle", a.SMART, a.JUG, a.FINISH,
                      brands=_SMALL),
            _category("toaster", a.POWER, a.FINISH,
                      brands=_SMALL),
            _category("oven", a.SMART, a.LITRES, a.FINISH,
                      brands=_LARGE),
        ),
    ),
    Department(
        "furniture",
        DOMESTIC,
        (
            _category("sofa", a.SEATS, a.COVER, a.WIDTH,
                      brands=_SOFAS),
            _category("desk", a.ELECTRIC, a.WOOD, a.WIDTH,
                      brands="ikea flexispot autonomous hermanmiller vitra bisley habitat"),
            _category("mattress", a.FIRMNESS, a.BED_SIZE, a.DEPTH,
                      brands="emma simba tempur casper sealy ikea leesa hypnos"),
            _category("bookcase", a.WOOD, a.WIDTH,
                      brands=_SOFAS),
            _category("office chair", a.LEATHER, a.COLOUR,
                      brands="hermanmiller steelcase ikea secretlab sihoo vitra humanscale"),
            _category("dining table", a.WOOD, a.WIDTH,
                      brands=_SOFAS),
            _category("wardrobe", a.WOOD, a.WIDTH,
                      brands="ikea habitat wayfair nolte rauch hulsta"),
            _category("lamp", a.SMART, a.SHADE, a.COLOUR,
                      brands="philips ikea artemide flos osram yeelight eglo"),
        ),
    ),
    Department(
        "sports",
        ACTIVE,
        (
            _category("running shoes", a.GENDER, a.WATERPROOF, a.SHOE_SIZE, a.COLOUR,
                      brands=f"{_SPORT} hoka brooks saucony"),
            _category("bicycle", a.ELECTRIC, a.WHEEL, a.COLOUR,
                      brands="trek giant specialized cube scott merida cannondale bianchi"),
            _category("yoga mat", a.THICKNESS, a.COLOUR,
                      brands="manduka lululemon gaiam nike adidas reebok"),
            _category("tent", a.WATERPROOF, a.PERSONS, a.COLOUR,
                      brands="coleman vango msr quechua naturehike bigagnes"),
            _category("backpack", a.WATERPROOF, a.CANISTER, a.COLOUR,
                      brands=f"{_OUTDOOR} samsonite nike"),
            _category("dumbbell", a.WEIGHT, a.COLOUR,
                      brands="bowflex reebok domyos york kettler gymstick"),
            _category("football", a.SIZE, a.COLOUR,
                      brands="adidas nike puma mizuno derbystar molten mitre"),
            _category("tracksuit", a.GENDER, a.FIT, a.SIZE, a.COLOUR,
                      brands=_SPORT),
        ),
    ),
    Department(
        "beauty",
        DOMESTIC,
        (
            _category("face cream", a.ORGANIC, a.SKIN, a.BOTTLE, a.SCENT,
                      brands=_SKINCARE),
            _category("shampoo", a.ORGANIC, a.BOTTLE, a.SCENT,
                      brands="pantene dove loreal garnier schwarzkopf nivea kerastase aussie"),
            _category("perfume", a.GENDER, a.BOTTLE, a.SCENT,
                      brands="chanel dior guerlain lancome versace armani gucci hermes"),
            _category("lipstick", a.ORGANIC, a.TONE, a.PACK,
                      brands=_MAKEUP),
            _category("hair dryer", a.POWER, a.COLOUR,
                      brands="dyson philips braun remington babyliss panasonic ghd"),
            _category("toothbrush", a.ELECTRIC, a.COLOUR, a.PACK,
                      brands="oralb philips colgate curaprox foreo xiaomi"),
            _category("sunscreen", a.WATERPROOF, a.SKIN, a.BOTTLE, a.SCENT,
                      brands=_SKINCARE),
            _category("nail polish", a.TONE, a.PACK,
                      brands=_MAKEUP),
        ),
    ),
    Department(
        "tools",
        TECHNICAL,
        (
            _category("drill", a.BRUSHLESS, a.VOLTAGE, a.PACK,
                      brands=_TOOLS),
            _category("circular saw", a.BRUSHLESS, a.VOLTAGE, a.POWER,
                      brands=_TOOLS),
            _category("sander", a.BRUSHLESS, a.VOLTAGE, a.POWER,
                      brands=_TOOLS),
            _category("screwdriver", a.ELECTRIC, a.PACK, a.COLOUR,
                      brands="wera wiha stanley bosch bahco knipex"),
            _category("ladder", a.HEIGHT, a.COLOUR,
                      brands="hailo zarges krause stanley werner"),
            _category("pressure washer", a.ELECTRIC, a.POWER, a.LENGTH,
                      brands="karcher nilfisk bosch stihl makita"),
            _category("toolbox", a.SIZE, a.COLOUR,
                      brands="stanley dewalt milwaukee keter raaco"),
        ),
    ),
    Department(
        "toys",
        ACTIVE,
        (
            _category("building blocks", a.AGE, a.PIECES, a.COLOUR,
                      brands="lego megabloks playmobil cobi sluban"),
            _category("jigsaw puzzle", a.AGE, a.PIECES, a.PACK,
                      brands="ravensburger clementoni trefl schmidt educa"),
            _category("doll", a.AGE, a.COLOUR, a.SIZE,
                      brands="mattel hasbro simba zapf miniverse bratz"),
            _category("board game", a.AGE, a.PLAYERS, a.PACK,
                      brands=f"{_TOYS} kosmos asmodee"),
            _category("model car", a.AGE, a.COLOUR, a.PACK,
                      brands="hotwheels majorette siku bburago tamiya"),
            _category("plush bear", a.ORGANIC, a.SIZE, a.COLOUR,
                      brands="steiff gund jellycat ty nici"),
        ),
    ),
    Department(
        "baby",
        DOMESTIC,
        (
            _category("stroller", a.WATERPROOF, a.COVER, a.WEIGHT,
                      brands=_BABY),
            _category("nappies", a.ORGANIC, a.STAGE, a.PACK,
                      brands="pampers huggies libero lillydoo naty"),
            _category("child seat", a.ISOFIX, a.STAGE, a.COLOUR,
                      brands="maxicosi cybex britax joie recaro nuna"),
            _category("baby monitor", a.LINK, a.SMART, a.MONITOR_SIZE, a.COLOUR,
                      brands="philips motorola vtech babymoov nanit eufy"),
            _category("feeding bottle", a.BOTTLE, a.COLOUR,
                      brands="philips nuk tommeetippee mam medela chicco"),
            _category("high chair", a.WOOD, a.COLOUR,
                      brands="stokke chicco ikea peg hauck bugaboo"),
        ),
    ),
    Department(
        "pets",
        DOMESTIC,
        (
            _category("dog food", a.BREED, a.ORGANIC, a.TASTE, a.BAG,
                      brands=_PETS),
            _category("cat food", a.ORGANIC, a.TASTE, a.BAG,
                      brands=_PETS),
            _category("cat litter", a.ORGANIC, a.SCENT, a.BAG,
                      brands="catsan biokats everclean tigerino cats"),
            _category("pet bed", a.WATERPROOF, a.SIZE, a.COLOUR,
                      brands="trixie ferplast hunter knuffelwuff karlie"),
            _category("aquarium", a.SMART, a.LITRES, a.COLOUR,
                      brands="juwel eheim fluval tetra dennerle"),
            _category("leash", a.LEATHER, a.LENGTH, a.COLOUR,
                      brands="flexi trixie hunter ruffwear julius"),
        ),
    ),
    Department(
        "automotive",
        TECHNICAL,
        (
            _category("tyre", a.SEASON, a.RIM, a.PACK,
                      brands=_CARS),
            _category("motor oil", a.VISCOSITY, a.CANISTER,
                      brands="castrol mobil shell liquimoly motul total"),
            _category("dash cam", a.RESOLUTION, a.LINK, a.STORAGE, a.COLOUR,
                      brands="garmin viofo nextbase xiaomi blackvue"),
            _category("car battery", a.SEASON, a.VOLTAGE, a.PACK,
                      brands="varta bosch exide banner yuasa"),
            _category("wiper blade", a.SEASON, a.PACK, a.WIDTH,
                      brands="bosch valeo denso trico heyner"),
        ),
    ),
    Department(
        "garden",
        ACTIVE,
        (
            _category("lawn mower", a.ELECTRIC, a.SMART, a.VOLTAGE, a.WIDTH,
                      brands=_GARDEN),
            _category("hedge trimmer", a.ELECTRIC, a.VOLTAGE, a.LENGTH,
                      brands=_GARDEN),
            _category("garden hose", a.LENGTH, a.COLOUR,
                      brands="gardena hozelock karcher tricoflex fiskars"),
            _category("barbecue", a.ELECTRIC, a.WIDTH, a.FINISH,
                      brands="weber napoleon broilking campingaz outdoorchef"),
            _category("plant pot", a.ORGANIC, a.SIZE, a.COLOUR,
                      brands="elho lechuza scheurich ikea keter"),
        ),
    ),
    Department(
        "groceries",
        DOMESTIC,
        (
            _category("coffee beans", a.ORGANIC, a.ROAST, a.GRAMS, a.PACK,
                      brands=_FOOD),
            _category("chocolate", a.ORGANIC, a.COCOA, a.GRAMS, a.PACK,
                      brands="lindt milka ritter ferrero godiva nestle"),
            _category("tea", a.ORGANIC, a.SCENT, a.PACK,
                      brands="twinings lipton teekanne yogi pukka ahmad"),
            _category("pasta", a.ORGANIC, a.GRAMS, a.PACK,
                      brands="barilla dececco rummo garofalo buitoni"),
        ),
    ),
)
# fmt: on
