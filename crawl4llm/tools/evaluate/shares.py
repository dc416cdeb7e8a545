"""The share of a gap that a policy closes: between a simple policy and a bound, with its spread over sets of seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crawl4llm.tools.evaluate.figures import Cell
from crawl4llm.tools.evaluate.ranking import OfWebs

BASE, BOUND = "parent_mean", "bound"
"""The policies between which the gap is."""
CLOSED_AT: Final = (10, 25)
"""Per cent of the pages in reach."""
LEAST_GAP: Final = 0.05
"""Of recall: shares of a smaller gap would be chance."""
CLOSED: Final = (
    f"Closed: what a policy finds above {BASE}, as a share of what the bound finds above it, on average over the sets "
    f"of seeds; in brackets its 95% interval, by resampling the sets of seeds. A web whose gap in recall is below "
    f"{LEAST_GAP} is left out, and a dash stands if all are: so small a gap is mostly chance"
)
_RESAMPLED: Final = 1000
_ENDS: Final = 0.025, 0.975

Floats = NDArray[np.float64]


class Closed(NamedTuple):
    """The share of a gap that a policy closes."""

    share: float | None
    """Over all webs; None if the gap is small on each."""
    low: float | None
    """Of its 95% interval; None if that is not known, as from one set of seeds."""
    high: float | None
    webs: Sequence[float | None]
    """The share on each web."""

    def told(self) -> str | None:
        """Return the share with its interval, for a table."""
        if self.share is None:
            return None
        return f"{self.share:.2f}" + ("" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})")


def closed(ours: OfWebs, base: OfWebs, bound: OfWebs) -> Closed:
    """Return the share of the gap from ``base`` to ``bound`` that is closed; values are paired by web and set."""
    gains, gaps = _above(ours, base), _above(bound, base)
    share = _share(gains, gaps)
    ends = interval(_shares(gains, gaps, resampled)) if min(map(len, gains)) > 1 else None
    low, high = (None, None) if ends is None or share is None else ends
    return Closed(share, low, high, [_share([gain], [gap]) for gain, gap in zip(gains, gaps, strict=True)])


def resampled(values: Sequence[float] | Floats, web: int = 0) -> Floats:
    """Return the means of a web's values in samples of its sets of seeds, always the same; webs differ in theirs."""
    means: Floats = np.asarray(values)[_drawn(len(values), web)].mean(axis=1)
    return means


def interval(means: Floats) -> tuple[float, float] | None:
    """Return the 95% interval of what samples gave; None if fewer than half gave a number."""
    known = np.sort(means[np.isfinite(means)])
    if len(known) < len(means) / 2:
        return None
    low, high = (float(known[int(end * len(known))]) for end in _ENDS)
    return low, high


def closed_cells(marks: Mapping[int, Closed] | None, webs: Sequence[str]) -> list[Cell]:
    """Return a policy's cells: the share at each of CLOSED_AT, and at the last the web on which it is least."""
    if marks is None:
        return [None] * (len(CLOSED_AT) + 1)
    known = [(share, web) for share, web in zip(marks[CLOSED_AT[-1]].webs, webs, strict=True) if share is not None]
    worst = [f"{web}: {share:.2f}" for share, web in sorted(known)[:1]]
    return [*(marks[mark].told() for mark in CLOSED_AT), worst[0] if worst else None]


def _above(values: OfWebs, base: OfWebs) -> list[Floats]:
    return [np.subtract(one, two) for one, two in zip(values, base, strict=True)]


def _share(gains: Sequence[Floats], gaps: Sequence[Floats]) -> float | None:
    (share,) = _shares(gains, gaps, lambda values, _: np.array([values.mean()]))
    return None if np.isnan(share) else float(share)


def _shares(gains: Sequence[Floats], gaps: Sequence[Floats], means: Callable[[Floats, int], Floats]) -> Floats:
    """Return the share over some webs, or that of each sample of their sets of seeds; NaN if all gaps are small."""
    gain, gap = (np.array([means(one, web) for web, one in enumerate(some)]) for some in (gains, gaps))
    is_wide = gap >= LEAST_GAP
    whole = np.where(is_wide, gap, 0.0).sum(axis=0)
    shares: Floats = np.where(is_wide, gain, 0.0).sum(axis=0) / np.where(whole > 0, whole, np.nan)
    return shares


@cache
def _drawn(sets: int, web: int) -> NDArray[np.int64]:
    drawn = Random(web).choices(range(sets), k=sets * _RESAMPLED)  # by Python, as NumPy may change what it draws
    return np.array(drawn).reshape(_RESAMPLED, sets)
