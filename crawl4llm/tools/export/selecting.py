"""Which documents are exported, in which order; every other one is counted by the reason for which it is left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from crawl4llm.base.terminal import harmless
from crawl4llm.tools.evaluate.documents import Fingerprints, Flags, Integers
from crawl4llm.tools.export.near_duplicates import near_duplicates
from crawl4llm.tools.export.rows import Rows
from crawl4llm.tools.export.table import Table
from crawl4llm.tools.export.wanted import INFLUENCE, Wanted

DUPLICATE_ID, DUPLICATE, NEAR_DUPLICATE = "duplicate_id", "duplicate_text", "near_duplicate"
LANGUAGE, TOO_SHORT, TOO_LONG = "language", "too_short", "too_long"
_MOST_NAMED = 10
NO_INFLUENCE, BELOW, NOT_ORACLE, NOT_TOP = "no_influence", "below_min_influence", "not_oracle", "not_top"


class Selection(NamedTuple):
    """What is exported."""

    order: Integers
    """Numbers of documents."""
    left_out: Counter[str]
    """How many others, by reason: the first that holds, in the order in which they stand in this module."""


def select(table: Table, rows: Rows, wanted: Wanted, oracle: float | None, damaged: Mapping[int, str]) -> Selection:
    """Choose documents. ``oracle`` is the influence from which pages belong to the oracle set, if that is wanted;
    ``damaged`` are documents that turned out to be so, with the reason.
    """
    chosen = _Chosen(table, {**table.reasons, **damaged})
    chosen.keep_first(table.ids, table.crawl_order, DUPLICATE_ID)
    if wanted.languages:
        numbers = [number for name, number in table.languages.items() if _matches(name, wanted.languages)]
        chosen.drop(~np.isin(table.language, numbers), LANGUAGE)
    if wanted.min_words is not None:
        chosen.drop(table.words < wanted.min_words, TOO_SHORT)
    if wanted.max_words is not None:
        chosen.drop(table.words > wanted.max_words, TOO_LONG)
    if wanted.selects_by_influence:
        chosen.drop(np.isnan(table.influence), NO_INFLUENCE)
    if wanted.min_influence is not None:
        chosen.drop(table.influence < wanted.min_influence, BELOW)
    if oracle is not None:
        chosen.drop(table.influence < oracle, NOT_ORACLE)
    best_first = table.best_first
    if not wanted.keep_duplicates:
        chosen.keep_first(table.digests, best_first, DUPLICATE)
    if wanted.near_duplicates is not None:
        signatures = ((int(number), rows[int(number)].signature or "") for number in chosen.among(best_first))
        found = np.fromiter(near_duplicates(signatures, wanted.near_duplicates), dtype=np.int64)
        chosen.drop_numbers(found, NEAR_DUPLICATE)
    best = chosen.among(best_first)
    if wanted.top_share is not None:
        share = Fraction(str(wanted.top_share))  # as it was given: in floats 0.07 * 100 is more than 7
        chosen.drop_numbers(best[math.ceil(share * len(best)) :], NOT_TOP)
    if wanted.top is not None:
        chosen.drop_numbers(best[wanted.top :], NOT_TOP)
    return Selection(chosen.among(best_first if wanted.order == INFLUENCE else table.crawl_order), chosen.left_out)


class _Chosen:
    """The documents that have not been left out yet."""

    def __init__(self, table: Table, reasons: Mapping[int, str]) -> None:
        self.left_out = Counter(reasons.values())
        self._kept: Flags = np.ones(len(table), dtype=np.bool_)
        self._kept[np.fromiter(reasons, dtype=np.int64)] = False

    def drop(self, flags: Flags, reason: str) -> None:
        """Leave out the documents that are marked."""
        self.left_out[reason] += int(np.count_nonzero(self._kept & flags))
        self._kept &= ~flags

    def drop_numbers(self, numbers: Integers, reason: str) -> None:
        """Leave out some documents."""
        flags = np.zeros(len(self._kept), dtype=np.bool_)
        flags[numbers] = True
        self.drop(flags, reason)

    def keep_first(
        self, values: Fingerprints | np.ndarray[tuple[int], np.dtype[np.bytes_]], order: Integers, reason: str
    ) -> None:
        """Of documents with the same value, leave out all but the first in an order."""
        among = self.among(order)
        _, first = np.unique(values[among], return_index=True)
        self.drop_numbers(np.delete(among, first), reason)

    def among(self, order: Integers) -> Integers:
        """Those of some documents that have not been left out, in the same order."""
        return order[self._kept[order]]


def unknown_language(table: Table, wanted: Sequence[str]) -> str | None:
    """Say what is wrong where languages are wanted and no document is of one, or of any; None where nothing is."""
    if not wanted or not len(table) or any(_matches(name, wanted) for name in table.languages):
        return None
    known = sorted(name for name in table.languages if name)
    if not known:
        return "--language: no page has a language here, its archive tells none; export without --language"
    listed = harmless(", ".join(known[:_MOST_NAMED])) + (" ..." if len(known) > _MOST_NAMED else "")
    return f"--language {' '.join(wanted)}: no page is in it; the archives have {listed}"


def _matches(language: str | None, wanted: Sequence[str]) -> bool:
    """Whether a language tag, or the first of several, is one of those wanted or a variety of one (``en-GB``)."""
    tag = (language or "").split(",")[0].strip().lower().replace("_", "-")
    return any(tag == name or tag.startswith(f"{name}-") for name in (name.lower() for name in wanted))


def plan_shards(order: Integers, text_bytes: Integers, wanted: Wanted) -> Iterator[Integers]:
    """Divide documents among files, in their order."""
    if wanted.shard_bytes is None:
        for start in range(0, len(order), wanted.shard_documents):
            yield order[start : start + wanted.shard_documents]
        return
    start = 0
    ends = np.cumsum(text_bytes[order])
    while start < len(order):
        before = int(ends[start - 1]) if start else 0
        full = int(np.searchsorted(ends, before + wanted.shard_bytes, side="right"))
        end = min(max(full, start + 1), start + wanted.shard_documents)
        yield order[start:end]
        start = end
