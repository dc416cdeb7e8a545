"""A frontier of owners that tells their sites apart: one that never answered holds up no other site of its owner.

A site is a scheme, a host and a port. It has answered if any HTTP answer came from it. Anybody can link to a port of an
owner at which nobody listens, or to a host that does not exist, so a document of another site is a *try*:

- A try that fails costs its owner turns: the owner has :data:`TURNS_A_TRY` answered exchanges before the next try, for
  each turn that the try took. So tries take 5% of an owner's turns at most. An owner with no other documents is not
  held to that.
- After a failed try the site is left alone for a while, and its owner is not.

Until then the documents of such a site are set aside, and the owner's next best document is offered.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator, MutableMapping
from itertools import islice
from typing import Any, Final, Protocol

from crawl4llm.base.domains import owner_of
from crawl4llm.base.urls import site_of
from crawl4llm.crawl.layer import Layer
from crawl4llm.frontier import Aside, Entry, Evicted, FrontierOwners, Lease, Outcome, OwnerFrontier, place_of
from crawl4llm.parts import Part
from crawl4llm.policies import Pieces

TURNS_A_TRY: Final = 19
"""Answered exchanges of an owner for each turn that a failed try took."""
_ANSWERED, _OFFERED, _LEFT_ALONE = 1, 2, 3
"""States of a site: it answered; one of its documents waits for a try; it must be left alone first."""
_TRIES: Final = "tries"
"""The scope of an owner's documents that wait to be tried, one or a few for each site; other documents have their site
as scope."""
_MOST_MOVED: Final = 1000
"""Most documents set aside or taken back in one call, so that the call is short."""
_GRACE: Final = 1.0
"""Seconds for which an owner without other documents is left alone, because the links of its last page may come."""
_MOST_NAMES: Final = 65_536
"""Most owners that owe turns, and sites that are given up, that this process remembers."""


class Index(FrontierOwners, Protocol):
    """The owners of a frontier, with calls to wake them."""

    alarm: float


class SitedFrontier(Layer):
    """Implements :class:`crawl4llm.frontier.OwnerFrontier`.

    Documents set aside are not in the frontier's length or its caps, and get no new scores. The crawl saves which sites
    answered; it does not save which owners owe turns.
    """

    _within: OwnerFrontier

    def __init__(self, within: OwnerFrontier, aside: Aside, answering: Part | None = None) -> None:
        """``answering``: the part that answers documents without a request, for which no site need answer."""
        super().__init__(within)
        self._aside, self._answering = aside, answering
        index: Any = within.owners
        self.owners: Index = index
        self._sites: MutableMapping[str, Any] = {}
        """States of sites, by name."""
        self._over: OrderedDict[str, None] = OrderedDict()
        """Sites that this process has given up; their documents end without a request when their turn comes."""
        self._owes: OrderedDict[str, int] = OrderedDict()
        """Turns by owner that must go to answered sites before the next try."""
        self._offered: dict[str, tuple[str, bool]] = {}
        """By owner, the key of a document that is queued for a try, and whether the owner had no other documents."""
        self._counts: Counter[str] = Counter()
        """Documents set aside, by owner."""
        self._trying: dict[int, str] = {}
        """Sites by the tokens of leases that are tries."""
        self._due: list[tuple[float, str, str]] = []
        """A heap of times to look again at an owner (the site is empty) or at a site that is left alone."""
        self._expected: set[tuple[str, str]] = set()
        """Owners and sites in that heap."""
        self._back: deque[tuple[str, str]] = deque()
        """Owners and scopes whose documents return to the queue."""
        self._evicted: list[Evicted] = []
        """Documents that returning ones evicted; reported with the next ones."""

    # -- what is kept ---------------------------------------------------------------------------------------------

    def keep_in(self, pieces: Pieces) -> None:
        """Keep the states of sites in ``pieces``. Restore those of an earlier process, and the documents that it set
        aside."""
        self._sites = pieces.mapping("sites", lambda value: value in (_ANSWERED, _OFFERED, _LEFT_ALONE))
        self._find()

    def _find(self) -> None:
        """Find the documents that are set aside."""
        self._counts.clear()
        for owner, site, number in unanswered_in(self._aside):
            self._counts[owner] += number
            self._expect(-math.inf, owner, site)

    @property
    def waiting(self) -> int:
        """Documents that are set aside because their sites have not answered."""
        return self._counts.total()

    @property
    def only_unanswered(self) -> bool:
        """True if each document that is queued, leased or set aside has a site that has not answered, or a parked
        owner."""
        if not (self._counts or self._trying) or self._within.leased != len(self._trying):
            return False
        return len(self._within) == self.owners.documents.parked + len(self._offered)

    def next_tries(self, most: int) -> tuple[int, list[str], int, float]:
        """Return four values: the number of documents that wait because their sites have not answered, including
        current tries; ``most`` of their owners; the number of further owners; the time of the next look at one of them,
        infinity if none is due."""
        number, owners = self.waiting + len(self._offered) + len(self._trying), list(islice(self._counts, most))
        return number, owners, len(self._counts) - len(owners), self._due[0][0] if self._due else math.inf

    # -- what whoever asks tells ----------------------------------------------------------------------------------

    def is_unanswered(self, url: str) -> bool:
        """Return whether no HTTP answer has come from the site of a URL."""
        return self._sites.get(site_of(url)) != _ANSWERED and bool(owner_of(url))

    def answered(self, url: str) -> None:
        """Note an HTTP answer from the site of a URL."""
        if self.is_unanswered(url):
            site = site_of(url)
            self._sites[site] = _ANSWERED
            self._over.pop(site, None)
            for token in [token for token, tried in self._trying.items() if tried == site]:
                del self._trying[token]
            self._take_back(owner_of(url), site)

    def took_turn(self, owner: str) -> None:
        """Note an answered exchange of an owner."""
        if owner in self._owes:
            self._owes[owner] -= 1
            if not self._owes[owner]:
                del self._owes[owner]
                self._look_at(owner)

    def failed(self, url: str, turns: int) -> None:
        """Note that a try ended without an answer, and took ``turns`` turns of its owner."""
        self._owes[owner_of(url)] = TURNS_A_TRY * turns
        self._owes.move_to_end(owner_of(url))
        if len(self._owes) > _MOST_NAMES:
            self._owes.popitem(last=False)

    def forgive(self, owner: str) -> None:
        """Cancel the turns that an owner owes."""
        if self._owes.pop(owner, 0):
            self._look_at(owner)

    def leave_alone(self, url: str, until: float) -> None:
        """Leave the site of a URL alone until then; the owners are told too."""
        self._expect(until, owner_of(url), site_of(url))

    def give_up(self, url: str) -> None:
        """Let the documents of a site end, each when its turn comes."""
        if (site := site_of(url)) not in self._over:
            self._over[site] = None
            if len(self._over) > _MOST_NAMES:
                self._over.popitem(last=False)
            self._take_back(owner_of(url), site)

    # -- the frontier's protocol ----------------------------------------------------------------------------------

    def push(self, entries: Iterable[Entry]) -> list[Evicted]:
        self._push(entries)
        evicted, self._evicted = self._evicted, []
        return evicted

    def lease(self, n: int) -> list[Lease]:
        self._look_around()
        leases: list[Lease] = []
        moved = 0
        while len(leases) < n and moved < _MOST_MOVED:
            some = self._within.lease(n - len(leases))
            if not some:
                break
            asked = [lease for lease in some if self._may_be_asked(lease)]
            leases += asked
            moved += len(some) - len(asked)
        return leases

    def settle(self, lease: Lease, outcome: Outcome, reason: str | None = None) -> bool:
        ended = self._within.settle(lease, outcome, reason)
        self._end(lease)
        return ended

    def give_back(self, lease: Lease, *, attempted: bool) -> bool:
        """Give a document back. One whose try failed is set aside at once, because it would hold up its owner's next
        document."""
        owner, site = _owner_and_site(lease.entry)
        if not attempted or not owner or self._is_open(site):
            given = self._within.give_back(lease, attempted=attempted)
        else:
            given = (entry := self._within.withdraw(lease)) is not None
            if entry is not None:
                entry.attempts += 1
                self._set_aside(owner, site, entry)
        self._end(lease)
        return given

    def withdraw(self, lease: Lease) -> Entry | None:
        entry = self._within.withdraw(lease)
        self._end(lease)
        return entry

    def drop_owner(self, owner: str, outcome: Outcome, reason: str, most: int) -> list[Entry]:
        self._offered.pop(owner, None)
        if self._within.owners.queued_of(owner) < most:
            self._push(self._taken(owner, self._aside.take_owner(_name(owner), most)))
        return self._within.drop_owner(owner, outcome, reason, most)

    # -- its parts ------------------------------------------------------------------------------------------------

    def _is_open(self, site: str) -> bool:
        """Return whether the documents of a site are leased in order, without a try."""
        return self._sites.get(site) == _ANSWERED or site in self._over

    def _is_known(self, lease: Lease) -> bool:
        """Return whether a document needs no request, so that its site has no part in it."""
        return self._answering is not None and self._answering.is_answered(lease.entry)

    def _may_be_asked(self, lease: Lease) -> bool:
        """Return whether a document may be requested now, or ended; otherwise set it aside."""
        if self._is_known(lease):
            return True
        owner, site = _owner_and_site(lease.entry)
        key, is_alone = self._offered.get(owner, ("", False))
        if key == lease.entry.key:
            del self._offered[owner]  # also if its site was given up meanwhile: another one is to be offered
        else:
            is_alone = False
        if self._is_open(site) or not owner:
            return True
        if self.owners.ready_at(site) <= self.owners.now and (is_alone or owner not in self._owes):
            self._trying[lease.token] = site
            return True
        self.owners.release(owner, self.owners.now)
        if (entry := self._within.withdraw(lease)) is not None:
            self._set_aside(owner, site, entry)
        return False

    def _set_aside(self, owner: str, site: str, entry: Entry) -> None:
        """Set a document aside. It is tried when its site may be, unless another document of the site is tried
        before."""
        until, scope = self.owners.ready_at(site), site
        if until > self.owners.now:
            self._sites[site] = _LEFT_ALONE
            self._expect(until, owner, site)
        elif self._sites.get(site) != _OFFERED:
            self._sites[site], scope = _OFFERED, _TRIES
        self._aside.add(_name(owner), scope, entry)
        self._counts[owner] += 1
        self._look_later(owner)

    def _end(self, lease: Lease) -> None:
        """Note the end of a lease, after which a set-aside document of its owner or site may be tried."""
        self._trying.pop(lease.token, None)
        if not self._counts or self._is_known(lease):
            return
        owner, site = _owner_and_site(lease.entry)
        if owner in self._counts:
            if not self._is_open(site):
                self._try_next(owner, site)
            self._look_later(owner)

    def _try_next(self, owner: str, site: str) -> None:
        """Have the best set-aside document of a site tried when the site may be."""
        if (until := self.owners.ready_at(site)) > self.owners.now:
            self._expect(until, owner, site)
            return
        for entry in self._take(owner, site, 1):
            self._sites[site] = _OFFERED
            self._aside.add(_name(owner), _TRIES, entry)
            self._counts[owner] += 1
            self._look_later(owner)

    def _look_later(self, owner: str) -> None:
        """Look at an owner at once if it may be tried, otherwise when its other documents may have ended."""
        if owner not in self._owes or self.owners.is_parked(owner):
            self._look_at(owner)
        elif (ready := self.owners.ready_at(owner)) < math.inf:  # else the end of its lease comes here
            self._expect(max(ready, self.owners.now) + _GRACE, owner)

    def _look_at(self, owner: str) -> None:
        """Look at an owner in the next call of lease()."""
        self._expected.discard((owner, ""))
        self._expect(-math.inf, owner)

    def _expect(self, until: float, owner: str, site: str = "") -> None:
        """Look at an owner, or at one of its sites, at a time."""
        if (owner, site) not in self._expected and until < math.inf:
            self._expected.add((owner, site))
            heapq.heappush(self._due, (until, owner, site))
            self.owners.alarm = min(self.owners.alarm, until)

    def _look_around(self) -> None:
        """Queue documents whose try is due, and those of sites that answered or are given up."""
        for _ in range(_MOST_MOVED):
            if not self._due or self._due[0][0] > self.owners.now:
                break
            _, owner, site = heapq.heappop(self._due)
            self._expected.discard((owner, site))
            if not site:
                self._offer(owner)
            elif self._is_open(site):
                self._take_back(owner, site)
            else:
                self._try_next(owner, site)
        moved = 0
        while self._back and moved < _MOST_MOVED:
            owner, scope = self._back[0]
            if entries := self._take(owner, scope, _MOST_MOVED):
                self._push(entries)
                moved += len(entries)
            else:
                self._back.popleft()
        if self._counts and not (self._back or self._due or self._within.leased or len(self._within)):
            self._find()  # nothing that is to come would lead there
        self.owners.alarm = self.owners.now if self._back else self._due[0][0] if self._due else math.inf

    def _offer(self, owner: str) -> None:
        """Queue the best document of an owner that waits for a try, if a try is allowed now."""
        if self.owners.is_parked(owner):
            self._offered.pop(owner, None)
            if owner in self._counts:  # the crawl may end when all that is left is parked
                self._push(self._taken(owner, self._aside.take_owner(_name(owner), _MOST_MOVED)))
                self._look_at(owner)
            return
        if owner not in self._counts or owner in self._offered:
            return
        if owner in self._owes:
            ready = self.owners.ready_at(owner)
            if self.owners.queued_of(owner) or ready == math.inf:
                return  # the end of its next lease comes here again
            if ready + _GRACE > self.owners.now:
                self._expect(ready + _GRACE, owner)
                return
        for entry in self._take(owner, _TRIES, 1):
            self._offered[owner] = entry.key, owner in self._owes
            self._push([entry])

    def _take_back(self, owner: str, site: str) -> None:
        """Return the documents of a site to the queue."""
        if owner in self._counts:
            self._back.append((owner, site))
            self.owners.alarm = min(self.owners.alarm, self.owners.now)

    def _take(self, owner: str, scope: str, most: int) -> list[Entry]:
        return self._taken(owner, self._aside.take(_name(owner), scope, most))

    def _taken(self, owner: str, entries: list[Entry]) -> list[Entry]:
        """Note that documents are no longer set aside."""
        self._counts[owner] -= len(entries)
        if not self._counts[owner]:
            del self._counts[owner]
        return entries

    def _push(self, entries: Iterable[Entry]) -> None:
        """Queue documents. If the caps drop one that was to be tried, the next one of its site is tried."""
        for evicted in self._within.push(entries):
            self._evicted.append(evicted)
            owner, site = _owner_and_site(evicted.entry)
            if owner in self._counts and not self._is_open(site):
                if self._offered.get(owner, ("", False))[0] == evicted.entry.key:
                    del self._offered[owner]
                self._try_next(owner, site)
                self._look_at(owner)


def unanswered_in(aside: Aside) -> Iterator[tuple[str, str, int]]:
    """Yield owners, sites and numbers of documents that are set aside because their sites have not answered; an empty
    site stands for several."""
    for place, entry, number in aside.groups():
        owner, site = _owner_and_site(entry)
        if place == place_of(_name(owner), _TRIES):
            yield owner, "", number
        elif place == place_of(_name(owner), site):
            yield owner, site, number  # others wait for a budget


def _owner_and_site(entry: Entry) -> tuple[str, str]:
    url = entry.url or entry.key
    return owner_of(url), site_of(url)


def _name(owner: str) -> str:
    """Return the name for the documents that are set aside here for an owner; other names are for budgets."""
    return f"?{owner}"
