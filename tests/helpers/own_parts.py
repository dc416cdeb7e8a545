"""Parts of somebody else's, for CRAWL_PARTS."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from typing import Any
from zlib import crc32

from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import Why
from crawl4llm.base.pages import Link
from crawl4llm.frontier import Entry, Outcome
from crawl4llm.parts import Part, Rated, Refusal
from crawl4llm.policies import Candidate, CrawledPage, Pieces

ENOUGH = "own_enough"
PAGES = 130
LATER = 60


def one_in(number: int, url: str) -> bool:
    """Return whether a URL is one of those that a part does something with."""
    return crc32(f"{number} {url}".encode()) % number == 0


class Own(Part):
    """Leaves links, drops documents, lets others wait until 60 pages are crawled, and ends the crawl with 130 pages.

    The variables OWN_KILLED and OWN_RAISES say with which page the process dies, or which hook raises an error then.
    """

    name = "own"
    spent = "own_spent"

    def identity(self) -> Mapping[str, Any]:
        """The variable OWN_FILE stands for a file that the part reads."""
        return {"file": os.environ["OWN_FILE"]} if "OWN_FILE" in os.environ else {}

    def begin(self) -> None:
        self._pages = self._leases = 0
        self._ended: MutableMapping[str, Any] = {}
        """How often leases ended, by owner."""
        self._owners: list[str] = []
        """Of the documents that wait."""

    def follows(self, source: Entry, links: Sequence[Link]) -> Sequence[Link]:
        self._trouble("follows")
        kept = [link for link in links if not one_in(5, link.url)]
        self.counts["links/own_left"] += len(links) - len(kept)
        return kept

    def admits(self, candidate: Candidate) -> Refusal | None:
        self._trouble("admits")
        if one_in(7, candidate.url):
            return Refusal("own_dropped", Why("a seventh"), "links/own_dropped")
        return None

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        self._trouble("found")
        self.counts["links/own_found"] += len(new)

    def place(self, entries: Sequence[Entry]) -> None:
        self._trouble("place")

    def lease(self, entry: Entry) -> str | None:
        self._trouble("lease")
        if self._pages >= LATER or entry.parent is None or not one_in(3, entry.url):
            return None
        self._owners.append(owner_of(entry.url))
        return "later"

    def ended(self, entry: Entry, outcome: Outcome | None, *, asked: bool) -> None:
        self._leases += 1
        owner = owner_of(entry.url)
        self._ended[owner] = [*self._ended.get(owner, []), str(outcome and outcome.value)]

    def rated(self, place: int, page: Rated) -> None:
        self._trouble("rated")
        page.line["own"] = place
        page.metadata["own-place"] = place

    def crawled(self, entry: Entry, page: Rated) -> None:
        self._trouble("crawled")
        self._pages += 1
        self.counts["pages/own"] += 1
        if self._pages == LATER:
            for owner in dict.fromkeys(self._owners):
                self.shelf.take_back(owner, "later", 1000)
            self._owners.clear()

    def finished(self) -> str | None:
        return ENOUGH if self._pages >= PAGES else None

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        return {"own/ended": self._leases, "own/share": self._pages / PAGES}

    def lines(self, figures: Mapping[str, float | None]) -> Iterator[str]:
        yield f"  own              {figures['own/share']:.0%} of {PAGES}"

    def keep_in(self, pieces: Pieces) -> None:
        self._ended = pieces.mapping("own/ended", lambda value: isinstance(value, list))

    def save(self) -> Any:
        return {"pages": self._pages, "leases": self._leases, "owners": self._owners}

    def load(self, state: Any) -> None:
        self._pages, self._leases, self._owners = state["pages"], state["leases"], state["owners"]
        assert sum(len(outcomes) for outcomes in self._ended.values()) == self._leases

    def _trouble(self, hook: str) -> None:
        """Die, or raise an error, if that is asked for."""
        if hook == "rated" and self._pages >= int(os.environ.get("OWN_KILLED", PAGES + 1)):
            os.kill(os.getpid(), signal.SIGKILL)
        wanted, _, page = os.environ.get("OWN_RAISES", "").partition(" ")
        if hook == wanted and self._pages >= int(page):
            raise ValueError("own trouble")


class Noting(Part):
    """Notes each call of a hook, with its own name, in a list that all such parts share."""

    called: list[tuple[str, str]] = []  # noqa: RUF012 - shared by those of a test, which clears it

    def follows(self, source: Entry, links: Sequence[Link]) -> Sequence[Link]:
        self.called.append(("follows", self.name))
        return links

    def admits(self, candidate: Candidate) -> Refusal | None:
        self.called.append(("admits", self.name))
        return None

    def seeds(self, url: str) -> Refusal | None:
        self.called.append(("seeds", self.name))
        return None

    def blocks(self, url: str) -> Refusal | None:
        self.called.append(("blocks", self.name))
        return None

    def found(self, page: CrawledPage, new: Sequence[Candidate]) -> None:
        self.called.append(("found", self.name))

    def place(self, entries: Sequence[Entry]) -> None:
        self.called.append(("place", self.name))

    def drops(self, entry: Entry) -> Refusal | None:
        self.called.append(("drops", self.name))
        return None

    def lease(self, entry: Entry) -> str | None:
        self.called.append(("lease", self.name))
        return None

    def ended(self, entry: Entry, outcome: Outcome | None, *, asked: bool) -> None:
        self.called.append(("ended", self.name))

    def rated(self, place: int, page: Rated) -> None:
        self.called.append(("rated", self.name))

    def crawled(self, entry: Entry, page: Rated) -> None:
        self.called.append(("crawled", self.name))

    def finished(self) -> str | None:
        self.called.append(("finished", self.name))
        return None

    def figures(self, figures: Mapping[str, float | None]) -> Mapping[str, float | None]:
        self.called.append(("figures", self.name))
        return {}


class First(Noting):
    """See its base."""

    name = "first"


class Second(Noting):
    """See its base."""

    name = "second"


class NoPart:
    """Has what it takes but for its base."""
