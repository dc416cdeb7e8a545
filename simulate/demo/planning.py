"""Puts the plan of a web together."""

from __future__ import annotations

from simulate.clueweb22.tree_writer import assign_ids
from simulate.demo.links import LinkPlanner
from simulate.demo.pages import PagePlanner
from simulate.demo.sites import plan_sites
from simulate.demo.streams import stream
from simulate.demo.web import Web

RECORDS_PER_FILE = 500
"""Fewer than the dataset has, so that the files can be written in parallel."""


def plan_web(pages: int, hosts: int, seed: int) -> Web:
    """The sites, pages, links and ids of a web: a function of its arguments alone."""
    sites = plan_sites(stream(seed, "sites"), pages, hosts)
    planned = PagePlanner(stream(seed, "pages")).plan(sites)
    links = LinkPlanner(stream(seed, "links"), sites, planned).plan()
    order = list(range(len(planned)))
    stream(seed, "ids").shuffle(order)  # an id says nothing about its page
    keys = [""] * len(planned)
    for number, key in zip(order, assign_ids([planned[n].language for n in order], RECORDS_PER_FILE), strict=True):
        keys[number] = key
    return Web(seed, sites, planned, links, keys)
