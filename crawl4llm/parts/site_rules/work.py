"""Drops URLs that match a rule of SITE_RULES, on sites that are recognised as those of its software."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final
from urllib.parse import unquote

from crawl4llm.base.errors import Why
from crawl4llm.base.expressions import Expressions
from crawl4llm.base.reasons import SITE_RULE
from crawl4llm.base.software_marks import Mark
from crawl4llm.frontier import Entry
from crawl4llm.parts.part import Part, Rated, Refusal
from crawl4llm.parts.site_rules import Settings
from crawl4llm.parts.site_rules.recognising import Sites, is_row
from crawl4llm.parts.site_rules.table import Software
from crawl4llm.policies import Candidate, Pieces

_LONGEST: Final = 2048
"""Most characters of path and query that are searched."""


def software_of(lists: Collection[str]) -> list[Software]:
    """Return the software for which lists have rules."""
    return [one for name in lists for one in import_module(f"crawl4llm.parts.site_rules.{name}").SOFTWARE]


class RulesOfSites:
    """The rules of some lists, and the sites to which they apply."""

    def __init__(self, software: Sequence[Software]) -> None:
        self._rules = {of.name: of for of in software}
        self.sites = Sites(self._rules)

    def rule_of(self, url: str) -> str | None:
        """Return the first rule that a URL matches, such as ``mediawiki.action``; None if it matches none."""
        for name, root in self.sites.software_of(url):
            if (rest := _below(url, root)) is not None and (rule := self.rule_for(name, rest)) is not None:
                return rule
        return None

    def rule_for(self, name: str, rest: str) -> str | None:
        """Return the first rule of a software that path and query below its place match."""
        of = self._rules[name]
        found = _compiled(of).search(unquote(rest[:_LONGEST]))
        return None if found is None else f"{name}.{of.rules[int(str(found.lastgroup)[1:])].name}"


@cache
def _compiled(of: Software) -> re.Pattern[str]:
    """Return the rules of a software as one expression; called when the first site of it is met."""
    return re.compile("|".join(f"(?P<r{number}>{rule.pattern})" for number, rule in enumerate(of.rules)))


def _moved_to(url: str, other: str) -> str:
    """Return a URL with the scheme and host of another one, because a redirect may only add ``www.``."""
    return other[: _path_in(other)] + url[_path_in(url) :]


def _path_in(url: str) -> int:
    """Return the offset of the path of a URL, or the URL's length."""
    place = url.find("/", url.find("//") + 2)
    return len(url) if place < 0 else place


def _below(url: str, root: str) -> str | None:
    """Return path and query of a URL below a folder, from the slash on; None if it lies elsewhere."""
    place = _path_in(url)
    if place == len(url):
        return "/" if root == "/" else None
    return url[place + len(root) - 1 :] if url.startswith(root, place) else None


class SiteRules(Part):
    """See the module. A redirect by the same rule is followed, because a seed may lie there. SCOPE_ALLOW has
    exceptions."""

    name = "site_rules"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self._software = software_of(options.site_rules)
        allowed = self.options.scope_allow
        self._allowed = Expressions(allowed, "SCOPE_ALLOW") if allowed else None

    def begin(self) -> None:
        self._rules = RulesOfSites(self._software)

    def identity(self) -> Mapping[str, Any]:
        return {"site_rules": self.options.site_rules, "site_rules_allowed": self._allowed and self._allowed.digest}

    def admits(self, candidate: Candidate) -> Refusal | None:
        return self._refusal(candidate.url or candidate.key)

    def drops(self, entry: Entry) -> Refusal | None:
        return None if entry.parent is None else self._refusal(entry.url or entry.key)

    def redirects(self, source: Entry, url: str) -> Refusal | None:
        refusal = self._refusal(url)
        is_within = refusal is not None and refusal == self._refusal(_moved_to(source.url or source.key, url))
        return None if is_within else refusal

    def crawled(self, entry: Entry, page: Rated) -> None:
        if page.head is not None:
            self.learn(page.key, page.head.marks)

    def learn(self, url: str, marks: Sequence[Mark]) -> None:
        """Note the marks of a page."""
        self.counts["sites/recognised"] += self._rules.sites.learn(url, marks)

    def keep_in(self, pieces: Pieces) -> None:
        self._rules.sites.stored = pieces.mapping("site_rules", is_row)

    def _refusal(self, url: str) -> Refusal | None:
        rule = self._rules.rule_of(url)
        if rule is None or (self._allowed is not None and self._allowed.first_in(url) is not None):
            return None
        return Refusal(SITE_RULE, Why(f"SITE_RULES {rule}"), f"links/site_rule/{rule}")
