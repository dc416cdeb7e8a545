"""The shapes of the objects of a crawl, checked when they are read: sound JSON may still be of something else.

A shape is a set of types (of values that are one of them), of strings (one of these), ``[shape]`` (a list of such),
``(shape, shape)`` (a list of so many), ``{name: shape}`` (an object with at least these fields), ``{...: shape}`` (one
whose values are all such), :class:`Maybe` or :class:`Where`. Many values are looked at together, which takes a fraction
of the time of one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final
from uuid import UUID

from crawl4llm.base.compression import COMPRESSIONS
from crawl4llm.cluster.storage import Storage
from crawl4llm.crawl.crawl_state import DONE
from crawl4llm.frontier import Outcome


@dataclass(frozen=True)
class Maybe:
    """The shape of what may be None."""

    shape: Any


@dataclass(frozen=True)
class Where:
    """A shape, and what holds of a value that has it."""

    shape: Any
    holds: Callable[[Any], object]


def fits(values: Sequence[Any], shape: Any) -> bool:
    """Return whether all of some values have a shape."""
    if isinstance(shape, Maybe):
        return fits([value for value in values if value is not None], shape.shape)
    if isinstance(shape, Where):
        return fits(values, shape.shape) and all(map(shape.holds, values))
    types = set(map(type, values))
    if isinstance(shape, set):
        return types <= shape or (types <= {str} and set(values) <= shape)
    if isinstance(shape, dict):
        if types <= {dict} and ... in shape:
            return fits(list(chain.from_iterable(value.values() for value in values)), shape[...])
        try:
            return types <= {dict} and all(fits([value[name] for value in values], of) for name, of in shape.items())
        except KeyError:
            return False
    if not types <= {list}:
        return False
    if isinstance(shape, list):
        return fits(list(chain.from_iterable(values)), shape[0])
    return set(map(len, values)) <= {len(shape)} and all(
        fits([value[place] for value in values], of) for place, of in enumerate(shape)
    )


def read(storage: Storage, name: str, data: bytes, shape: Any) -> Any:
    """Return the content of an object. Raises StorageError where it has another shape."""
    content = storage.unpack(name, data)
    if not fits([content], shape):
        raise storage.damaged(name, "it does not hold what its name says")
    return content


def read_if_there(storage: Storage, name: str, shape: Any) -> Any:
    """Return the content of an object; None where there is none. Raises StorageError."""
    data = storage.get(name)
    return None if data is None else read(storage, name, data, shape)


def _is_ranked(offered: Mapping[str, Any]) -> bool:
    return len(offered["keys"]) == len(offered["scores"])


def _has_facts(exchange: Mapping[str, Any]) -> bool:
    return all((line is None) == (facts is None) for _, line, _, facts in exchange["rows"])


def _leads_to_targets(links: Mapping[str, Any]) -> bool:
    pages = links["pages"]
    used = set(chain.from_iterable(page[1] for page in pages))
    return used <= set(range(len(links["targets"]))) and all(
        numbers is None or len(numbers) == len(refs) for _, refs, numbers, _ in pages
    )


def _is_uuid(text: str) -> bool:
    try:
        UUID(text)
    except ValueError:
        return False
    return True


_TEXT, _WHOLE, _FLAG = {str}, {int}, {bool}
_NUMBER = {int, float}
_COUNTS = {...: _WHOLE}
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
_SETTINGS: Final = {
    "URL_POLICY": _TEXT,
    "WARC_ENABLED": _FLAG,
    "WARC_COMPRESSION": set(COMPRESSIONS),
    "WARC_MAX_BYTES": _WHOLE,
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
EXCHANGE: Final = Where(_EXCHANGE, _has_facts)
_LINKS: Final = [(_WHOLE, [_WHOLE], Maybe([_WHOLE]), _WHOLE)]
LINKS: Final = Where({"targets": [(_TEXT, _TEXT)], "pages": _LINKS}, _leads_to_targets)
LINKS_WITH_ANCHORS: Final = Where({"targets": [(_TEXT, _TEXT, _TEXT, _FLAG)], "pages": _LINKS}, _leads_to_targets)
FOUND: Final = [(_WHOLE, _WHOLE)]
HEAD: Final = (_WHOLE, _WHOLE, _WHOLE, Maybe(_TEXT), [_WHOLE], Maybe(_SEGMENT), [(_WHOLE, _WHOLE)])
"""Of a commit in continuous order."""
LINES: Final = ([{**_PAGE, "visited": _WHOLE, "fetched": _WHOLE}], [_FAILURE])
MAIL: Final = Where(
    {"targets": [[{str, bool}]], "pages": _LINKS, "redirects": [(_TEXT, _NUMBER, _WHOLE, Maybe(_TEXT), _WHOLE)]},
    lambda mail: _leads_to_targets(mail) and {*map(len, mail["targets"])} in (set(), {2}, {4}),
)
QUOTA: Final = (_WHOLE, _WHOLE)
SNAPSHOT: Final = {"share": _WHOLE, "ended": _COUNTS, **_NEWS}
"""Of what is beside its tables."""
END: Final = {"reason": set(DONE), "iteration": _WHOLE, "crawled": _WHOLE}
CRAWL: Final = {
    "format": _WHOLE,
    "id": _TEXT,
    "identity": {"CRAWL_PARTITIONS": _WHOLE, "CRAWL_MAX_PAGES": _WHOLE, "CRAWL_BATCH_SIZE": _WHOLE},
    "facts": {"crawl_id": Where(_TEXT, _is_uuid), "policy": _TEXT, "settings": _SETTINGS},
    "archive": {"prefix": _TEXT, "start_date": _TEXT, "fields": {...: {str, int, float, bool, type(None)}}},
    "seeds": _COUNTS,
}
