"""What may be done with a page, by all signals that are known of it: the strictest of them holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from crawl4llm.base.reasons import OPT_OUT
from crawl4llm.optouts.said import Said
from crawl4llm.optouts.table import KNOWN_BEFORE, Action, row_of


class Verdict(NamedTuple):
    """What is forbidden of a page, and by which signals."""

    said: tuple[Said, ...] = ()
    """All signals of the page, those that forbid nothing too."""
    forbidden: Mapping[Action, Said] = {}
    """The signal that decides, by what it forbids: of several the first."""

    def forbids(self, action: Action) -> bool:
        """Return whether an action is forbidden."""
        return action in self.forbidden

    def reason(self, action: Action) -> str:
        """Return which signal forbids an action, in one clause; empty where none does."""
        said = self.forbidden.get(action)
        return "" if said is None else str(said)


NOTHING_SAID: Final = Verdict()


def decide(said: Iterable[Said], *, fetch_opted_out: bool = False) -> Verdict:
    """Return what the signals of a page forbid. ``fetch_opted_out``: what OPT_OUT_FETCH says."""
    said = tuple(said)
    if not said:
        return NOTHING_SAID
    forbidden: dict[Action, Said] = {}
    for one in said:
        if (row := row_of(one.signal, one.value)) is None:
            continue
        for action in row.forbids_fetched if fetch_opted_out else row.forbids:
            if action is not Action.FETCH or one.place in KNOWN_BEFORE:
                forbidden.setdefault(action, one)
    return Verdict(said, forbidden)


def reason_against_training(said: Iterable[Said]) -> str | None:
    """Return the reason for which a page is left out of data for training, with the signal that decides; None if it is
    not."""
    decides = decide(said, fetch_opted_out=True).forbidden.get(Action.EXPORT)  # that it was fetched is no matter here
    return None if decides is None else f"{OPT_OUT}/{decides.signal}"
