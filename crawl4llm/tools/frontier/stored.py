"""``scrapy frontier STORAGE``: a summary of a crawl by several workers, as of the newest iteration that all have begun,
or of their newest commits.

The frontier itself is with the workers: the storage has how many documents each partition has queued, and, in batch
order, the best of them, which it has offered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.received import Given
from crawl4llm.base.run_folder import STATS, read_json
from crawl4llm.base.stats import PREFIX
from crawl4llm.base.tables import Fact, Part, Rows
from crawl4llm.cluster import History
from crawl4llm.frontier import order_of
from crawl4llm.tools._storage_view import run_folder


def show_stored(url: str, settings: Given, most_partitions: int, most_best: int) -> Iterator[Part]:
    """Yield the facts of the storage. Raises InputError at the end if a finished crawl has lost documents."""
    history = History(url)
    counts = read_json(run_folder(url, settings) / STATS)
    offers: Sequence[Mapping[str, Any]] = []
    taken: frozenset[str] = frozenset()
    if history.is_continuous:
        queued = history.queued()
    else:
        offers, taken = _newest(history)
        queued = [offer["queued"] - sum(key in taken for key in offer["keys"]) for offer in offers]
    yield Fact("crawl", history.crawl["facts"]["crawl_id"])
    yield Fact("ended", history.end["reason"] if history.end else None, history.end["reason"] if history.end else "no")
    crawled = counts.get(f"{PREFIX}pages/crawled", 0)
    yield Fact("wanted", history.max_pages, "")
    yield Fact("crawled", crawled, f"{crawled:,} of {history.max_pages:,} pages")
    yield Fact("queued", sum(queued))
    for outcome in ("failed", "dropped"):
        start = f"{PREFIX}{outcome}/"
        reasons = {key.removeprefix(start): count for key, count in counts.items() if key.startswith(start) and count}
        total = sum(reasons.values())
        shown = ", ".join(f"{reason} {count:,}" for reason, count in reasons.items())
        yield Fact(outcome, {"all": total, **reasons}, f"{total:,}{f' ({shown})' if shown else ''}")
    largest = sorted(((count, number) for number, count in enumerate(queued)), key=lambda one: (-one[0], one[1]))
    title = f"\nPartitions ({min(most_partitions, len(queued)):,} of {len(queued):,})"
    yield Rows("partitions", ("queued", "partition"), largest[:most_partitions], title)
    best = _best([offer for offer in offers if offer["queued"]], taken)[:most_best]
    yield Rows("best", ("score", "id"), best, "\nThe best documents, as far as they were offered", digits=6)
    if history.end is not None and sum(queued) != (stated := counts.get(f"{PREFIX}frontier/queued")):
        raise InputError(f"STORAGE {url} is damaged: {sum(queued):,} documents are queued, and should be {stated:,}")


def _newest(history: History) -> tuple[Sequence[Mapping[str, Any]], frozenset[str]]:
    """Return the newest offers of all partitions, and those of their documents that were crawled since."""
    last = history.last_iteration()
    if last is None:
        return [], frozenset()
    of = history.iteration(last)
    if not (offers := of.offers()):
        return (history.iteration(last - 1).offers() if last else []), frozenset()
    if history.end is None or (plan := of.plan()) is None:
        return offers, frozenset()
    ended = [row for one in of.exchanges() for row in one.rows if row[1] is not None or row[2] is not None]
    return offers, frozenset(plan.keys[row[0]] for row in ended)


def _best(offers: Sequence[Mapping[str, Any]], taken: frozenset[str]) -> list[tuple[float, str]]:
    """Return documents, best first, up to where a partition may have more than it has offered."""
    shown = [
        [(order_of(score) + key.encode("utf-8", "surrogatepass"), score, key) for key, score in zip(*both, strict=True)]
        for both in ((offer["keys"], offer["scores"]) for offer in offers)
    ]
    ends = [one[-1][0] if one else b"" for one, offer in zip(shown, offers, strict=True) if offer["queued"] > len(one)]
    found = sorted(row for one in shown for row in one if row[2] not in taken and row[0] <= min(ends, default=row[0]))
    return [(score, key) for _, score, key in found]
