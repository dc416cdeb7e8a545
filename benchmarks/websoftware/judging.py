"""What a crawl brought home, judged from the servers' logs.

A request is *useful* if it is the first that brings a text whose source scores above 0.5. All others are chaff of some
kind: another URL of the same text, a page of low score, a list, a form, a redirect, an error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from benchmarks.websoftware.access_logs import Asked
from benchmarks.websoftware.planning import Plan, software
from benchmarks.websoftware.site import Site


@dataclass
class Verdict:
    """What requests were worth, in all or of one software."""

    requests: int = 0
    useful: int = 0
    good: int = 0
    """Useful texts that there are."""
    chaff: Counter[str] = field(default_factory=Counter)

    left: Counter[str] = field(default_factory=Counter)
    """Useful texts that the crawl knew of and did not fetch: ``waiting``, or the reason for which they were dropped."""

    @property
    def share(self) -> float:
        """Useful per request."""
        return self.useful / self.requests if self.requests else 0.0

    @property
    def missed(self) -> int:
        """Useful texts that were not brought."""
        return self.good - self.useful

    def told(self) -> dict[str, Any]:
        """Return it for a JSON file."""
        return {
            "requests": self.requests,
            "useful": self.useful,
            "useful per request": round(self.share, 4),
            "good": self.good,
            "missed": self.missed,
            "left": dict(self.left),
            "chaff": dict(self.chaff.most_common()),
        }


class Judge:
    """Judges requests to the sites of a plan."""

    def __init__(self, sites: Sequence[Site], planned: Plan) -> None:
        self._sites = {name: site for site in sites for name in site.names}
        self._texts: Mapping[str, Mapping[str, Any]] = {
            site.name: {fill.path: fill.text for fill in planned.fills[site.name]} for site in sites
        }
        self._good: Counter[str] = Counter()
        for site in sites:
            if not site.options.get("private"):
                self._good[site.software] += site.good

    def judge(self, requests: Iterable[Asked], known: Iterable[tuple[str, str]] = ()) -> dict[str, Verdict]:
        """Return a verdict by software, and ``all``.

        ``known`` are URLs that the crawl knew and did not fetch, each with the reason.
        """
        verdicts: defaultdict[str, Verdict] = defaultdict(Verdict)
        seen: set[str] = set()
        for name, number in self._good.items():
            verdicts[name].good = number
        for one in requests:
            site = self._sites.get(one.host.partition(":")[0].lower())
            if site is None:
                continue
            verdict = verdicts[site.software]
            verdict.requests += 1
            kind = self._kind(site, one, seen)
            if kind is None:
                verdict.useful += 1
            else:
                verdict.chaff[kind] += 1
        for text, site, reason in self._lost(known):
            if text not in seen:
                seen.add(text)
                verdicts[site.software].left[reason] += 1
        total = Verdict()
        for verdict in verdicts.values():
            total.requests += verdict.requests
            total.useful += verdict.useful
            total.good += verdict.good
            total.chaff += verdict.chaff
            total.left += verdict.left
        return {"all": total, **dict(sorted(verdicts.items()))}

    def _lost(self, known: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Site, str]]:
        """Yield the good texts among URLs that were not fetched, with site and reason."""
        for url, reason in known:
            parts = urlsplit(url)
            site = self._sites.get(parts.hostname or "")
            if site is not None:
                target = f"{parts.path}?{parts.query}" if parts.query else parts.path
                shown = software(site).read(site, target)
                text = self._texts[site.name].get(shown.path) if shown.path else None
                if text is not None and text.good:
                    yield text.id, site, reason

    def _kind(self, site: Site, one: Asked, seen: set[str]) -> str | None:
        """Return the kind of chaff that a request is; None if it is useful."""
        if 300 <= one.status < 400:
            return "redirect"
        if one.status >= 400:
            return "login wall" if one.status == 401 else "error"
        shown = software(site).read(site, one.target)
        text = self._texts[site.name].get(shown.path) if shown.path else None
        if text is None or not one.is_page:
            return "other page" if shown.kind == "page" else shown.kind
        if text.id in seen:
            return "same page again" if shown.kind == "page" else f"again: {shown.kind}"
        seen.add(text.id)
        return None if text.good else "low text"
