"""What the demo web talks about: twenty subjects with their nouns, and words that fit any of them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Subject(NamedTuple):
    """A field of interest. Sites and pages belong to one; the words are the same in good and in poor text."""

    name: str
    things: tuple[str, ...]
    """Countable nouns with a regular plural."""
    processes: tuple[str, ...]
    """Uncountable nouns."""
    people: tuple[str, ...]
    """Plural nouns."""


def _subject(name: str, things: str, processes: str, people: str) -> Subject:
    def words(text: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in text.split(","))

    return Subject(name, words(things), words(processes), words(people))


SUBJECTS: Final = (
    _subject(
        "beekeeping",
        "hive, frame, smoker, comb, queen cell, feeder, brood box, honey jar, swarm trap, bee suit, colony, entrance "
        "block, hive tool, wax sheet",
        "swarming, pollination, ventilation, foraging, overwintering, honey flow, requeening",
        "beekeepers, inspectors, growers, honey traders",
    ),
    _subject(
        "bread",
        "loaf, oven, starter, mixing bowl, dough scraper, flour mill, baking stone, proofing basket, grain, crust, "
        "baker's blade, rye bun, kneading hook, scale",
        "fermentation, kneading, proofing, gluten development, steaming, browning, hydration",
        "bakers, millers, pastry cooks, home cooks",
    ),
    _subject(
        "sailing",
        "mast, keel, rudder, mainsail, anchor, winch, halyard, hull, tiller, harbour, dinghy, compass, mooring, deck "
        "hatch",
        "navigation, tacking, reefing, drift, ballast, corrosion, buoyancy",
        "sailors, skippers, boat builders, harbour masters",
    ),
    _subject(
        "railways",
        "signal, locomotive, carriage, rail joint, switch, buffer stop, level crossing, bogie, brake shoe, platform, "
        "tunnel, viaduct, timetable, track gauge",
        "shunting, braking, electrification, signalling, track wear, scheduling, freight handling",
        "signallers, engineers, dispatchers, train drivers",
    ),
    _subject(
        "gardening",
        "seedling, greenhouse, compost heap, rose bush, cold frame, raised bed, watering can, hedge, bulb, trowel, "
        "fruit tree, root cutting, rain barrel, garden fork",
        "germination, pruning, mulching, drainage, grafting, composting, photosynthesis",
        "gardeners, botanists, allotment holders, seed merchants",
    ),
    _subject(
        "photography",
        "lens, shutter, tripod, negative, darkroom, light meter, camera body, flash unit, filter, print, viewfinder, "
        "sensor, aperture ring, slide",
        "exposure, focusing, developing, diffraction, colour balance, retouching, noise reduction",
        "photographers, picture editors, lab technicians, collectors",
    ),
    _subject(
        "bridges",
        "arch, pier, girder, suspension cable, footbridge, truss, expansion joint, bearing, abutment, tower, handrail, "
        "drawbridge, anchorage, deck plate",
        "fatigue, load testing, erosion, tension, compression, resonance, maintenance",
        "engineers, surveyors, riggers, city planners",
    ),
    _subject(
        "coffee",
        "grinder, roaster, kettle, filter paper, espresso machine, coffee bean, portafilter, cup, steam wand, water "
        "tank, burr, moka pot, tasting spoon, milk jug",
        "extraction, roasting, grinding, brewing, oxidation, milk frothing, degassing",
        "roasters, baristas, farmers, importers",
    ),
    _subject(
        "astronomy",
        "telescope, mirror, comet, planet, star chart, eyepiece, observatory, nebula, satellite, meteor, tripod mount, "
        "spectrograph, moon, sundial",
        "refraction, orbital motion, light pollution, parallax, collimation, tracking, stellar fusion",
        "astronomers, observers, opticians, amateurs",
    ),
    _subject(
        "printing",
        "typeface, press, ink roller, paper sheet, letter case, proof, binding, folio, engraving, composing stick, "
        "margin, woodcut, book cover, platen",
        "typesetting, inking, proofreading, paper making, lithography, kerning, bookbinding",
        "printers, typographers, publishers, engravers",
    ),
    _subject(
        "rivers",
        "weir, lock, flood plain, meander, tributary, sluice, reservoir, river gauge, estuary, canal, spring, dam, "
        "water mill, ferry landing",
        "sedimentation, erosion, flooding, irrigation, evaporation, dredging, groundwater flow",
        "hydrologists, lock keepers, anglers, ferry pilots",
    ),
    _subject(
        "pottery",
        "kiln, glaze, potter's wheel, clay body, vase, teapot, firing cone, mould, tile, slip trailer, bowl, kiln "
        "shelf, handle, ribbon tool",
        "firing, glazing, throwing, drying, shrinkage, oxidation, wedging",
        "potters, ceramic teachers, tile makers, museum curators",
    ),
    _subject(
        "weather",
        "barometer, cold front, rain gauge, cloud, storm, forecast, anemometer, weather balloon, isobar, thermometer, "
        "radar image, hailstone, lightning rod, fog bank",
        "condensation, convection, evaporation, forecasting, radiation, precipitation, atmospheric drag",
        "meteorologists, pilots, farmers, observers",
    ),
    _subject(
        "cycling",
        "chain, wheel, saddle, brake lever, derailleur, spoke, tyre, pedal, frame, handlebar, bottom bracket, pump, "
        "bike lock, pannier",
        "gear shifting, wheel truing, braking, rolling resistance, lubrication, climbing, route planning",
        "cyclists, mechanics, couriers, frame builders",
    ),
    _subject(
        "clocks",
        "pendulum, mainspring, escapement, dial, gear train, watch case, balance wheel, chime, winding key, bell, "
        "quartz crystal, bearing jewel, minute hand, clock tower",
        "regulation, lubrication, oscillation, timekeeping, thermal expansion, restoration, engraving",
        "watchmakers, restorers, collectors, apprentices",
    ),
    _subject(
        "networks",
        "router, packet, switch, fibre cable, firewall, server, domain name, access point, protocol, socket, data "
        "centre, modem, checksum, routing table",
        "routing, encryption, congestion control, caching, load balancing, name resolution, error correction",
        "administrators, operators, developers, auditors",
    ),
    _subject(
        "birds",
        "nest, feather, migration route, bird table, falcon, heron, nest box, egg, flock, wing, finch, ring, warbler, "
        "hide",
        "migration, moulting, nesting, birdsong, ringing, plumage wear, soaring",
        "ornithologists, wardens, ringers, volunteers",
    ),
    _subject(
        "textiles",
        "loom, shuttle, spinning wheel, thread, carpet, dye vat, needle, bobbin, yarn, felt hat, pattern card, woollen "
        "blanket, seam, tapestry",
        "weaving, dyeing, spinning, felting, shrinkage, embroidery, carding",
        "weavers, tailors, dyers, designers",
    ),
    _subject(
        "music",
        "violin, bow, tuning fork, keyboard, flute, score, metronome, drum, organ pipe, string, reed, concert hall, "
        "trumpet, sound post",
        "tuning, resonance, counterpoint, rehearsal, notation, improvisation, acoustics",
        "musicians, luthiers, conductors, composers",
    ),
    _subject(
        "geology",
        "fault, crystal, lava flow, fossil, quarry, rock sample, core drill, mineral, glacier, sandstone cliff, cave, "
        "hot spring, volcano, seismometer",
        "weathering, subduction, sedimentation, crystallisation, erosion, folding, carbon dating",
        "geologists, miners, surveyors, cavers",
    ),
)

MEASURES: Final = (
    "temperature", "pressure", "weight", "length", "depth", "speed", "humidity", "angle", "thickness", "cost",
    "volume", "tension", "age", "density", "frequency", "distance", "height", "strength", "balance", "load",
)  # fmt: skip
ADJECTIVES: Final = (
    "small", "large", "modern", "traditional", "simple", "heavy", "light", "reliable", "careful", "common", "rare",
    "steady", "strong", "narrow", "wide", "early", "late", "plain", "portable", "sturdy",
)  # fmt: skip
CITIES: Final = (
    "Norwick", "Easton Bay", "Harrowgate", "Milford", "Port Allen", "Kingsbridge", "Lowell Heath", "Stonehaven",
    "Westmere", "Brackley", "Fairhaven", "Oldcastle", "Rivermouth", "Ashford Green", "Clayton", "Dunmore",
    "Ferncliff", "Granby", "Highfield", "Larkhill",
)  # fmt: skip
FIRST_NAMES: Final = (
    "Anna", "Ben", "Carla", "David", "Elena", "Frank", "Grace", "Henry", "Ines", "Jonas", "Karim", "Laura", "Mina",
    "Nils", "Olga", "Paul", "Rosa", "Samir", "Tara", "Victor",
)  # fmt: skip
SURNAMES: Final = (
    "Abbot", "Berg", "Castell", "Dorn", "Ellery", "Farrow", "Gale", "Hollis", "Irwin", "Jarvis", "Keller", "Lomax",
    "Marsh", "Norton", "Okafor", "Pryce", "Quill", "Rowan", "Sato", "Thorne",
)  # fmt: skip
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip


def plural(noun: str) -> str:
    """The regular English plural."""
    if noun.endswith(("s", "x", "ch", "sh")):
        return noun + "es"
    if noun.endswith("y") and noun[-2] not in "aeiou":
        return noun[:-1] + "ies"
    if noun.endswith("loaf"):
        return noun[:-1] + "ves"
    return noun + "s"


def with_article(noun: str) -> str:
    """The noun with ``a`` or ``an`` before it."""
    return f"an {noun}" if noun[0] in "aeio" else f"a {noun}"
