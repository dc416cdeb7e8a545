"""Documents on lease: answers come in any order, and are taken in the order in which the leases were given."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice, takewhile

from crawl4llm.frontier import Lease, Outcome
from simulate.corpus import PageRecord


@dataclass(slots=True)
class Answer:
    """What came of a document on lease."""

    lease: Lease
    heard: bool = False
    page: PageRecord | None = None
    status: int | None = None
    reason: str | None = None
    """Why there is no page."""
    outcome: Outcome | None = None
    """How it ends without a page; None too where it is tried again."""


class Outstanding:
    """A reorder buffer: a slow document holds back those leased after it."""

    def __init__(self) -> None:
        self._answers: dict[int, Answer] = {}
        self._in_flight = 0

    def __len__(self) -> int:
        """Leases that were not taken yet."""
        return len(self._answers)

    @property
    def in_flight(self) -> int:
        """Leases of which nothing has been heard."""
        return self._in_flight

    @property
    def answered(self) -> int:
        """Leases of which something has been heard."""
        return len(self._answers) - self._in_flight

    def add(self, leases: Iterable[Lease]) -> None:
        """Wait for more."""
        for lease in leases:
            self._answers[lease.token] = Answer(lease)
            self._in_flight += 1

    def answer(self, lease: Lease) -> Answer | None:
        """The place for an answer; None where the lease has had one, or was taken."""
        answer = self._answers.get(lease.token)
        if answer is None or answer.heard:
            return None
        answer.heard = True
        self._in_flight -= 1
        return answer

    def withdraw(self, lease: Lease) -> bool:
        """Wait no more for a lease; whether nothing had been heard of it."""
        if self.answer(lease) is None:
            return False
        del self._answers[lease.token]
        return True

    def unanswered(self) -> list[Lease]:
        """Leases of which nothing has been heard, in their order."""
        return [answer.lease for answer in self._answers.values() if not answer.heard]

    def heard_of_first(self, n: int) -> bool:
        """Whether something has been heard of the first ``n``; there must be one."""
        return all(answer.heard for answer in islice(self._answers.values(), n))

    def take(self, most: int | None) -> list[Answer]:
        """The answers up to the first that is missing, ``most`` at most."""
        taken = list(islice(takewhile(lambda answer: answer.heard, self._answers.values()), most))
        for answer in taken:
            del self._answers[answer.lease.token]
        return taken
