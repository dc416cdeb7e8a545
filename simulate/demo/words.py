"""The words of the web: patterns of sentences by language, subjects, and words that fit any of them.

Names in braces are drawn anew wherever they stand; ``topic`` and ``theme`` are the page's own thing and process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Final, NamedTuple


class Language(NamedTuple):
    """Patterns of sentences."""

    explaining: Sequence[str]
    plain: Sequence[str]
    poor: Sequence[str]
    titles: Sequence[str]  # from those that promise an explanation to those that sell
    read_on: Sequence[str]


class Subject(NamedTuple):
    """A field of interest of one language."""

    language: str
    words: Mapping[str, Sequence[str]]  # words by their name in patterns


_ENGLISH: Final = """\
To understand the {topic}, it helps to begin with {theme}, because most of what follows depends on it.
For example, when the {measure} falls by {n} percent, the {thing} responds more slowly, and {people} must wait.
This means that the {measure} and the {measure} cannot be chosen independently of each other.
In other words, {theme} is not a property of the {topic} alone but of everything that surrounds it.
However, this explanation is incomplete, since it ignores what {process} does to the {thing} over time.
The term {theme} describes what happens between the {topic} and the {thing} while the {measure} is changing.
As a result, a {adj} {thing} needs far less attention than one in which {process} has been neglected.
By contrast, a {adj} {topic} tolerates a wider range of {measure}, although it is harder to adjust.
Because the {measure} rises with the square of the {measure}, small errors grow quickly.
If the {measure} is held constant, the remaining variation can be explained by {process} alone.
What matters is therefore not the {measure} itself but how fast it changes during {theme}.
This principle was first described in {year}, when {people} in {city} compared {n} {thing}s side by side.
It follows that {theme} should be understood as a balance between {process} and {process}.
Nevertheless, experiments with {thing}s show that the effect disappears when {process} is prevented.
The question of why {topic}s differ so much in {measure} has occupied {people} since {year}.
Suppose that {process} stops completely; then the {topic} would reach the {measure} of its surroundings.
A careful study of {n} {topic}s found that {theme} accounts for about {n} percent of the difference.
The same reasoning applies to the {thing}, provided that its {measure} does not exceed a certain limit.
Understanding this mechanism allows {people} to predict how {topic}s will behave under unusual conditions.

The {topic} in {city} was opened in {year} and has been repaired {n} times.
Last {month} we visited {people} near {city} and looked at their {thing}s.
{name} has worked with {thing}s for {n} years.
We found a {adj} {thing} at the market and took it home.
The group meets every week in {city} to talk about {theme} and {thing}s.
Some {people} prefer the {adj} {topic}, others keep the old one.
The new {thing} arrived in {month} and is about {n} centimetres long.
According to {name}, the {topic} needs a new {thing} before the winter.
There were about {n} {people} at the meeting, more than in {year}.
The council of {city} will decide about the {thing} in {month}.
My first {topic} came from {city} and was older than I was.
{name} and {name} showed us how they work with a {thing}.
Most of the {thing}s in this collection were made before {year}.
We changed the {thing} twice and checked the {measure} every hour.
The photograph shows {people} with a {adj} {thing} in the summer of {year}.

Buy {topic} online now, best price for {topic}s in {city}, free shipping on orders over ${n}!
Save {n}% on all {thing}s this week only, while stocks last.
Click here to see more {topic}s and subscribe to our newsletter for special offers.
We are the number one {topic} store in {city}, call now for a free quote.
Cheap {thing}s, discount {thing}s, {adj} {thing}s for sale, order today.
Add to cart. Add to wish list. Compare {thing}s. Share with friends.
Customers who viewed this {topic} also viewed: {thing}, {thing}, {thing}.
{topic} {city}, {topic} price, {topic} review, cheap {topic}, {topic} near me, buy {topic} {year}
best {topic} {year} best {thing} {year} top {thing} list free download {topic} pdf
Posted by {name} on {month} {n}, {year} | {n} comments | Read more ...
lol same here, my {thing} too!!! thx for sharing
{month} {year} ({n}) {month} {year} ({n}) {month} {year} ({n})
re: re: {topic} question?? anyone?? pls help
bump. any news about the {thing} in {city}??
Error: the {thing} could not be loaded. Please try again later.

How the {topic} works
An introduction to {theme}
Understanding {theme}: the case of the {topic}
A {adj} {topic} in {city}
Notes on {topic}s and {theme}
{name} talks about {topic}s
Best {topic}s {year} - top deals
{topic} {city} - prices and reviews
Re: {topic} question

See also {link}.
"""
_GERMAN: Final = """\
{topic} lässt sich nur verstehen, wenn man weiß, wie wichtig {process} dabei ist.
Das liegt daran, dass {process} schon wirkt, bevor {thing} sich sichtbar verändert.
Daraus folgt, dass {theme} und nicht allein {thing} den Unterschied ausmacht.
Im Jahr {year} zeigte ein Vergleich von {n} Fällen, dass {process} die Ursache war.

Im Sommer {year} stand {thing} noch im Hof.
Gestern war {topic} zum ersten Mal zu sehen.
Die Gruppe trifft sich jede Woche, und meistens geht es um {n} neue Bilder.

{topic} jetzt günstig online kaufen, nur {n} Euro!
Versandkostenfrei ab {n} Euro. Hier klicken und sparen.
Kunden kauften auch: {thing}, {thing}, {thing}. Lieferung in {n} Tagen.

Wie wichtig ist {theme}?
{topic} im Überblick
{topic} günstig kaufen

Mehr dazu unter {link}.
"""
LANGUAGES: Final = {
    code: Language(*(part.splitlines() for part in text.split("\n\n")))
    for code, text in {"en": _ENGLISH, "de": _GERMAN}.items()
}
_ANY_SUBJECT: Final = {
    "measure": "temperature, pressure, weight, length, depth, speed, humidity, angle, thickness, cost, volume",
    "adj": "small, large, modern, traditional, simple, heavy, light, reliable, common, rare, steady, narrow, plain",
    "city": "Norwick, Easton Bay, Harrowgate, Milford, Port Allen, Kingsbridge, Stonehaven, Westmere, Brackley",
    "name": "Anna Berg, Ben Abbot, Carla Dorn, David Gale, Elena Sato, Frank Lomax, Grace Okafor, Henry Pryce",
    "month": "January, February, March, April, May, June, July, August, September, October, November, December",
    "n": ", ".join(map(str, range(2, 60))),
    "year": ", ".join(map(str, range(1900, 2022))),
}
_SUBJECTS: Final = """\
en | hive, frame, smoker, comb, feeder, wax sheet | swarming, pollination, foraging | beekeepers, growers
en | oven, starter, mixing bowl, flour mill, baking stone, rye bun | fermentation, kneading, proofing | bakers, millers
en | mast, keel, rudder, mainsail, anchor, hull, tiller, harbour | navigation, tacking, drift, ballast | sailors
en | signal, locomotive, carriage, rail joint, platform, tunnel | shunting, braking, signalling | engineers, dispatchers
en | seedling, greenhouse, cold frame, raised bed, hedge, trowel | germination, pruning, drainage | gardeners, growers
en | camera, shutter, tripod, darkroom, viewfinder, print | exposure, focusing, developing | photographers, curators
en | arch, girder, cable, pier, bridge deck, bearing, pylon | corrosion, load testing, tension | surveyors, riggers
en | grinder, roaster, kettle, espresso machine, moka pot, cup | extraction, roasting, brewing | baristas, roasters
en | telescope, mirror, comet, planet, star chart, eyepiece | refraction, parallax, collimation | observers
en | typeface, ink roller, paper sheet, proof, folio, woodcut | typesetting, inking, lithography | printers, engravers
en | weir, flood plain, meander, sluice, reservoir, canal, dam | sedimentation, erosion, dredging | anglers
en | kiln, glaze, clay pot, vase, teapot, mould, tile, handle | firing, glazing, throwing, shrinkage | potters, teachers
en | barometer, cold front, rain gauge, cloud, storm, isobar | condensation, convection, forecasting | pilots, observers
en | chain, wheel, saddle, brake lever, spoke, pedal, pump | gear shifting, wheel truing, climbing | cyclists, mechanics
en | router, packet, server, firewall, modem, socket, checksum | routing, encryption, caching | operators
en | nest, feather, falcon, heron, egg, flock, warbler, finch | migration, moulting, nesting | ornithologists, wardens
de | der Bienenstock, das Brot, der Garten, die Brücke, das Pendel | die Gärung, die Wartung, die Reibung, das Altern |
"""


def _subject(line: str) -> Subject:
    language, things, processes, people = (part.strip() for part in line.split("|"))
    words = {**_ANY_SUBJECT, "thing": things, "process": processes, "people": people}
    return Subject(language, {name: text.split(", ") for name, text in words.items()})


SUBJECTS: Final = tuple(map(_subject, _SUBJECTS.splitlines()))


class Sentences(dict[str, str]):
    """Fills patterns; each name not given is drawn anew wherever it occurs."""

    def __init__(self, random: Random, subject: int, **given: str) -> None:
        super().__init__(given)
        self._random = random
        self._words = SUBJECTS[subject].words

    def __missing__(self, name: str) -> str:
        words = self._words[name]
        return words[int(self._random.random() * len(words))]

    def fill(self, pattern: str) -> str:
        """Return one sentence, with a capital at its start."""
        sentence = pattern.format_map(self)
        return sentence[0].upper() + sentence[1:]
