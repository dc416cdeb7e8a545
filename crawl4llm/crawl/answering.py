"""Answers for documents that need no request, because a part knows their pages."""

from __future__ import annotations

from collections.abc import Sequence

from crawl4llm.crawl.reorder_buffer import ReorderBuffer
from crawl4llm.crawl.scope import Scope
from crawl4llm.crawl.turns import owner_of_lease
from crawl4llm.frontier import UNREQUESTED, Lease, Outcome, Owners
from crawl4llm.parts import Part


def unknown_of(
    part: Part | None, scope: Scope, buffer: ReorderBuffer, owners: Owners | None, leases: Sequence[Lease]
) -> list[Lease]:
    """Answer the leased documents that a part knows, in the buffer that waits for them; return the others.

    A known document whose URL is blocked meanwhile is dropped. The page of another one is read when it is merged, so
    that the buffer holds no pages. Raises InputError.
    """
    if part is None:
        return list(leases)
    others: list[Lease] = []
    for lease in leases:
        entry = lease.entry
        if not part.is_answered(entry):
            others.append(lease)
        elif (answer := buffer.answer(lease)) is not None:
            if (refusal := scope.blocked(entry.url or entry.key)) is not None:
                answer.outcome, answer.reason, answer.why = Outcome.DROPPED, refusal.reason, refusal.why
            else:
                answer.known, answer.size = True, part.answers(entry.key) or 0
            if owners is not None and entry.cell != UNREQUESTED:  # it was leased as a document of its owner
                owners.release(owner_of_lease(lease), owners.now)
    return others
