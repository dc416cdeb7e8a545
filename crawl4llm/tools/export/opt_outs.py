"""Opt-outs in an export: the rule that leaves out pages which may not be trained on.

Three things decide, for a run of any kind:

- the signals that the archive noted with the page;
- signals that the sources have heard later (:mod:`crawl4llm.optouts.heard`);
- the head of the page's HTML, which is read whatever the archive notes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from crawl4llm.optouts import Heard, Said, as_text, from_text, reason_against_training
from crawl4llm.tools.export.rows import Row


def judged(row: Row, more: Iterable[Said] = ()) -> Row:
    """Return a row with more signals noted, and with the reason for which all of them leave it out, if they do."""
    said = list(dict.fromkeys([*from_text(row.signals), *more]))
    return row._replace(signals=as_text(said), reason=reason_against_training(said)) if said else row


def judged_later(rows: Iterable[Row], heard: Heard) -> Iterator[Row]:
    """Yield rows; those that the sources have heard opt-outs of get the reason."""
    if not heard:
        yield from rows
        return
    for row in rows:
        reason = row.reason
        if reason is None:
            reason = reason_against_training(heard.said(row.id, row.url, row.date or ""))
        yield row._replace(reason=reason)
