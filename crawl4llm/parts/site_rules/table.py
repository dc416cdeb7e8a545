"""The table of rules: which pages that a software makes of its own pages, or of none, are not asked for.

A rule is a regular expression that is searched in path and query below the place of the software, percent-decoded. It
drops edit forms, logins, old revisions, diffs, feeds, sort orders and second views. Lists that lead to good pages stay:
categories, boards, threads, indexes.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Rule(NamedTuple):
    """A kind of pages that one software makes, and a crawl does not ask for."""

    name: str
    pattern: str
    """It has no groups that capture, and no repetition within a repetition."""
    why: str
    source: str = ""
    """URL of what says so; empty if the software's own source does."""


class Software(NamedTuple):
    """The rules for the sites of one software."""

    name: str
    """As in :data:`crawl4llm.base.software_marks.SOFTWARE`."""
    title: str
    source: str
    """URL of the documentation, the robots.txt that comes with it, or the code that the rules are taken from."""
    rules: tuple[Rule, ...]


Q: Final = r"[?&;]"
"""Begins a parameter of the query."""
