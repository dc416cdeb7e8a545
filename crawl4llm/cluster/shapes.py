"""The shapes of the objects of a crawl, checked when they are read: sound JSON may still be of something else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from crawl4llm.base import received
from crawl4llm.base.shapes import (
    COUNTS,
    FLAG,
    IDENTIFIER,
    LARGEST_WHOLE,
    LINE,
    NAME_PART,
    NUMBER,
    VALUE,
    If,
    Maybe,
    Where,
    fits,
    misfit,
    named,
    whole,
)
from crawl4llm.cluster.storage import Storage
from crawl4llm.cluster_options import MOST_PARTITIONS
from crawl4llm.crawl import FRONTIER_EMPTY, MAX_PAGES
from crawl4llm.frontier import Outcome
from crawl4llm.parts import ENDS
from crawl4llm.warc import is_utc_date


def read(storage: Storage, name: str, data: bytes, shape: Any) -> Any:
    """Return the content of an object. Raises StorageError where it has another shape."""
    content = storage.unpack(name, data)
    if not fits([content], shape):
        raise storage.damaged(name, misfit(content, shape))
    return content


def read_if_there(storage: Storage, name: str, shape: Any) -> Any:
    """Return the content of an object; None where there is none. Raises StorageError."""
    data = storage.get(name)
    return None if data is None else read(storage, name, data, shape)


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


_TEXT, _FLAG, _NUMBER = {str}, FLAG, NUMBER
_WHOLE = whole(-1)
"""The seeds have the place -1."""
_COUNTS = named(LINE, whole(-LARGEST_WHOLE))
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
    "influence": Maybe(_NUMBER),
    "depth": _WHOLE,
    "parent": Maybe(_TEXT),
}
_SHOWN: Final = {"keys": [_TEXT], "scores": [_NUMBER]}
WHOLE: Final = Where(_SHOWN, _is_ranked)
OFFER: Final = Where({"queued": _WHOLE, **_SHOWN, **_NEWS}, _is_ranked)
PLAN: Final = Where((_WHOLE, [_WHOLE], [_TEXT], _NUMBER), lambda plan: len(plan[1]) == len(plan[2]))
_SEGMENT: Final = Where(
    _TEXT, re.compile(r"(i/\d{8}/pages-\d{4,}|p/\d{4,}/pages-\d{8})-[0-9a-f]{64}\.warc\.(gz|zst)").fullmatch
)
SEGMENTS: Final = Where([(_SEGMENT, _WHOLE, _WHOLE, _WHOLE, _WHOLE)], bool)
_EXCHANGE: Final = {
    "rows": [
        (
            _WHOLE,
            Maybe(_PAGE),
            Maybe(_FAILURE),
            Maybe({"date": Maybe(_TEXT), "language": Maybe(_TEXT), "opt_outs": _TEXT}),
        )
    ],
    "pages": Maybe(_SEGMENT),
    "counts": _COUNTS,
    "influence": (_NUMBER, _WHOLE),
}
EXCHANGE: Final = Where(_EXCHANGE, lambda told: all((row[1] is None) == (row[3] is None) for row in told["rows"]))
_LINKS: Final = [(_WHOLE, [_WHOLE], Maybe([_WHOLE]), whole())]
_MOST_KEYLESS: Final = 1 << 24
"""Links without a key in one section: it says how many each page has, and whoever reads it makes a list of them."""
LINKS: Final = Where({"targets": [(_TEXT, _TEXT)], "pages": _LINKS}, _leads_to_targets)
LINKS_WITH_ANCHORS: Final = Where({"targets": [(_TEXT, _TEXT, _TEXT, _FLAG)], "pages": _LINKS}, _leads_to_targets)
FOUND: Final = [(_WHOLE, _WHOLE)]
HEAD: Final = (_WHOLE, _WHOLE, _WHOLE, Maybe(_TEXT), [_WHOLE], Maybe(_SEGMENT), [(_WHOLE, _WHOLE)])
"""Of a commit in continuous order."""
_LINE_OF_PAGE: Final = {**_PAGE, "visited": _WHOLE, "fetched": _WHOLE, "near_duplicate_of": If(Maybe(whole()))}
LINES: Final = ([_LINE_OF_PAGE], [_FAILURE])
MAIL: Final = Where(
    {"targets": [[{str, bool}]], "pages": _LINKS, "redirects": [(_TEXT, _NUMBER, _WHOLE, Maybe(_TEXT), _WHOLE)]},
    lambda mail: _leads_to_targets(mail) and {*map(len, mail["targets"])} in (set(), {2}, {4}),
)
QUOTA: Final = (_WHOLE, _WHOLE)
SNAPSHOT: Final = {"share": _WHOLE, "ended": _COUNTS, **_NEWS}
"""Of what is beside its tables."""
END: Final = {"reason": {MAX_PAGES, FRONTIER_EMPTY, *ENDS}, "iteration": _WHOLE, "crawled": _WHOLE}
CRAWL: Final = {
    "format": _WHOLE,
    "id": IDENTIFIER,
    "identity": {
        "CRAWL_PARTITIONS": whole(1, MOST_PARTITIONS),
        "CRAWL_MAX_PAGES": whole(1),
        "CRAWL_BATCH_SIZE": whole(),
    },
    "facts": {**received.FACTS, "settings": received.ARCHIVED},
    "archive": {"prefix": NAME_PART, "start_date": Where({str}, is_utc_date), "fields": named(LINE, Maybe(VALUE))},
    "seeds": COUNTS,
}
