"""The table of rules: pages of a software that are not requested.

A rule is a regular expression that is searched in path and query below the path of the software, percent-decoded. It
drops edit forms, logins, old revisions, diffs, feeds, sort orders and second views. Lists that lead to good pages stay:
categories, boards, threads, indexes.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """A kind of pages of a software that a crawl does not request."""

    name: str
    pattern: str
    """A regular expression without capturing groups, and without nested repetitions."""
    why: str
    source: str = ""
    """URL of its source; empty if the software's own source is."""


class Software(NamedTuple):
    """The rules for the sites of one software."""

    name: str
    """A name in :data:`crawl4llm.base.software_marks.SOFTWARE`."""
    title: str
    source: str
    """URL of the source of the rules: documentation, the robots.txt that comes with the software, or code."""
    rules: tuple[Rule, ...]


Q: Final = r"[?&;]"
"""Begins a parameter of the query."""
