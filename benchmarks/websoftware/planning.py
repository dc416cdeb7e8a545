"""Which text goes where: places for all texts before anything is built, with links within sites and between them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from random import Random
from typing import NamedTuple

from benchmarks.websoftware.composition import VERSION
from benchmarks.websoftware.site import Fill, Link, Site, Software, as_software
from benchmarks.websoftware.software._common import titles
from benchmarks.websoftware.texts import Text
from crawl4llm.base.errors import InputError

_RELATED, _ABROAD = 3, 0.3
"""Links of a text to others of its site; share of the texts that link to another site."""
_NEAR = 12
"""A text leads to two that come soon after it, so that each is led to."""


class Plan(NamedTuple):
    """What the web is to hold."""

    fills: Mapping[str, Sequence[Fill]]
    """Of each site."""
    digests: Mapping[str, str]
    """Of each site: its options, and its texts with their places and links."""
    digest: str
    """Of the composition."""

    def table(self) -> dict[str, dict[str, str]]:
        """Return the texts of each site: from path to id."""
        return {name: {fill.path: fill.text.id for fill in fills} for name, fills in self.fills.items()}


def software(site: Site) -> Software:
    """Return the module of a site's software."""
    return as_software(import_module(f"benchmarks.websoftware.software.{site.software}"))


def plan(sites: Sequence[Site], texts: Sequence[Text]) -> Plan:
    """Give each site its texts. Raises InputError if there are too few."""
    pools = {good: [text for text in texts if text.good == good] for good in (True, False)}
    for good, pool in pools.items():
        wanted = sum(site.good if good else site.low for site in sites)
        if len(pool) < wanted:
            raise InputError(f"the web needs {wanted:,} {'good' if good else 'low'} texts, there are {len(pool):,}")
    chosen = {}
    for site in sites:
        some = [pools[True].pop(0) for _ in range(site.good)] + [pools[False].pop(0) for _ in range(site.low)]
        Random(f"texts of {site.name}").shuffle(some)
        chosen[site.name] = some
    paths = {site.name: software(site).paths(site, chosen[site.name]) for site in sites}
    fills = {site.name: _linked(site, sites, chosen, paths) for site in sites}
    digests = {site.name: _digest([VERSION, _told(site), fills[site.name]]) for site in sites}
    return Plan(fills, digests, _digest(sorted(digests.items())))


def _told(site: Site) -> list[object]:
    return [site.name, site.software, site.host, site.also, site.scheme, site.server, sorted(site.options.items())]


def _digest(told: object) -> str:
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _linked(
    site: Site, sites: Sequence[Site], chosen: Mapping[str, Sequence[Text]], paths: Mapping[str, Sequence[str]]
) -> list[Fill]:
    """Return a site's texts in their places, with links."""
    random = Random(f"links of {site.name}")
    names, own = titles(chosen[site.name]), paths[site.name]
    others = [other for other in sites if other is not site and other.host != site.host]
    found = []
    for number, text in enumerate(chosen[site.name]):
        targets = {(number + random.randint(1, _NEAR)) % len(own) for _ in range(2)}
        targets |= {random.randrange(len(own)) for _ in range(_RELATED - len(targets))}
        related = [Link(names[target], own[target]) for target in sorted(targets - {number})]
        abroad = [_foreign(random, others, chosen, paths)] if others and random.random() < _ABROAD else []
        found.append(Fill(text, own[number], names[number], related, abroad))
    return found


def _foreign(
    random: Random, others: Sequence[Site], chosen: Mapping[str, Sequence[Text]], paths: Mapping[str, Sequence[str]]
) -> Link:
    """Return a link to another site: half of them to its front page, many of those by an older address of it."""
    other = random.choice(others)
    if random.random() < 0.5 or not paths[other.name]:
        host = random.choice(other.names)
        return Link(other.options.get("title", other.host), f"{random.choice(('http', 'https'))}://{host}/")
    target = random.randrange(len(paths[other.name]))
    return Link(titles(chosen[other.name])[target], other.url + paths[other.name][target])
