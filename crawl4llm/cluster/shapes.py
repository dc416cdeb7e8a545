"""The shapes of the objects of a crawl, checked when they are read: sound JSON may still be of something else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from crawl4llm.base import received, shapes as base
from crawl4llm.cluster_options import MOST_PARTITIONS
from crawl4llm.crawl import FRONTIER_EMPTY, MAX_PAGES
from crawl4llm.frontier import Outcome
from crawl4llm.parts import ENDS
from crawl4llm.warc import is_utc_date


def in_parts(facts: Any, parts: int) -> Any:
    """Return the shape of the head of an object with some parts and with sections for partitions."""
    return facts, (base.whole(),) * parts, [(base.whole(), base.whole())]


def _is_ranked(offered: Mapping[str, Any]) -> bool:
    return len(offered["keys"]) == len(offered["scores"])


def _leads_to_targets(links: Mapping[str, Any]) -> bool:
    pages = links["pages"]
    if sum(page[3] for page in pages) > _MOST_KEYLESS:
        return False
    used = set(chain.from_iterable(page[1] for page in pages))
    return used <= set(range(len(links["targets"]))) and all(
        numbers is None or len(numbers) == len(refs) for _, refs, numbers, _ in pages
    )


def _is_row(row: tuple[Any, ...]) -> bool:
    """Return whether a row of an exchange that is of an archived page, and no other, has facts for the archive."""
    _, line, failure, facts = row
    return (line is not None and failure is None) == (facts is not None)


_TEXT, _FLAG, _NUMBER = {str}, base.FLAG, base.NUMBER
_WHOLE = base.whole(-1)
"""The seeds have the place -1."""
_COUNTS = base.named(base.LINE, base.whole(-base.LARGEST_WHOLE))
_FAILURE = {"id": _TEXT, "outcome": {one.value for one in Outcome}, "reason": _TEXT}
_NEWS: Final = {
    "news": [(_WHOLE, _WHOLE, _WHOLE)],
    "failures": [(_WHOLE, _FLAG, _WHOLE, _WHOLE, _FAILURE)],
    "counts": _COUNTS,
    "crawled": _WHOLE,
}
_PAGE: Final = {
    "id": _TEXT,
    "url": _TEXT,
    "priority": _NUMBER,
    "influence": base.Maybe(_NUMBER),
    "depth": _WHOLE,
    "parent": base.Maybe(_TEXT),
    "noindex": base.If(_FLAG),
}
_SHOWN: Final = {"keys": [_TEXT], "scores": [_NUMBER]}
WHOLE: Final = base.Where(_SHOWN, _is_ranked)
OFFER: Final = base.Where({"queued": _WHOLE, **_SHOWN, **_NEWS}, _is_ranked)
PLAN: Final = base.Where((_WHOLE, [_WHOLE], [_TEXT], _NUMBER), lambda plan: len(plan[1]) == len(plan[2]))
_SEGMENT: Final = base.Where(
    _TEXT, re.compile(r"(i/\d{8}/pages-\d{4,}|p/\d{4,}/pages-\d{8})-[0-9a-f]{64}\.warc\.(gz|zst)").fullmatch
)
SEGMENTS: Final = base.Where([(_SEGMENT, _WHOLE, _WHOLE, _WHOLE, _WHOLE)], bool)
_ABOUT: Final = {"date": base.Maybe(_TEXT), "language": base.Maybe(_TEXT), "opt_outs": _TEXT}
_EXCHANGE: Final = {
    "rows": [(_WHOLE, base.Maybe(_PAGE), base.Maybe(_FAILURE), base.Maybe(_ABOUT))],
    "pages": base.Maybe(_SEGMENT),
    "counts": _COUNTS,
}
EXCHANGE: Final = base.Where(_EXCHANGE, lambda told: all(map(_is_row, told["rows"])))
_MOST_KEYLESS: Final = 1 << 24
"""Links without a key in one section: it says how many each page has, and whoever reads it makes a list of them."""
SECTION: Final = base.Where(
    {
        "targets": [(_TEXT, _TEXT, _TEXT, _FLAG)],
        "pages": [(base.whole(-base.LARGEST_WHOLE), [_WHOLE], base.Maybe([_WHOLE]), base.whole())],
        "redirects": [(_TEXT, _NUMBER, _WHOLE, base.Maybe(_TEXT), _WHOLE)],
    },
    _leads_to_targets,
)
FOUND: Final = [(_WHOLE, _WHOLE)]
HEAD: Final = (_WHOLE, _WHOLE, _WHOLE, base.Maybe(_TEXT), [_WHOLE], base.Maybe(_SEGMENT))
"""Of a commit in continuous order."""
_LINE_OF_PAGE: Final = {
    **_PAGE,
    "visited": _WHOLE,
    "fetched": _WHOLE,
    "near_duplicate_of": base.If(base.Maybe(base.whole())),
}
LINES: Final = ([_LINE_OF_PAGE], [_FAILURE], [_PAGE])
"""Pages, failures, and dropped pages with links to documents of other partitions."""
QUOTA: Final = (_WHOLE, _WHOLE)
SNAPSHOT: Final = {"share": _WHOLE, "ended": _COUNTS, **_NEWS}
"""The shape of the content beside its tables."""
END: Final = {"reason": {MAX_PAGES, FRONTIER_EMPTY, *ENDS}, "iteration": _WHOLE, "crawled": _WHOLE}
CRAWL: Final = {
    "format": _WHOLE,
    "id": base.IDENTIFIER,
    "identity": {
        "CRAWL_PARTITIONS": base.whole(1, MOST_PARTITIONS),
        "CRAWL_MAX_PAGES": base.whole(1),
        "CRAWL_BATCH_SIZE": base.whole(),
    },
    "facts": {**received.FACTS, "settings": received.ARCHIVED},
    "archive": {
        "prefix": base.NAME_PART,
        "start_date": base.Where({str}, is_utc_date),
        "fields": base.named(base.LINE, base.Maybe(base.VALUE)),
    },
    "seeds": base.COUNTS,
}
