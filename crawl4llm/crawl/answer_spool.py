"""The answer spool: a file in the JOBDIR for pages that a live crawl has fetched and cannot merge yet.

A batch is merged in the order of its leases, so one slow page can hold back thousands. Their answers are written here
if they take too much memory, and when the crawl is stopped; a resumed crawl does not request them again.

A record is a head (token, length of the JSON, length of the bodies, CRC-32 of both), the answer as JSON, and the bodies
one after another. It is valid only for the lease that it was written for: the same token and the same document.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, get_args

from crawl4llm.base.errors import Why, as_input_error
from crawl4llm.base.files import AppendFile, ArchiveError
from crawl4llm.base.input_files import json_or_none
from crawl4llm.base.page_heads import PageHead
from crawl4llm.base.pages import Capture, Link, PageRecord, Truncation
from crawl4llm.base.shapes import FLAG, LINE, Maybe, Where, fits, whole
from crawl4llm.base.software_marks import Mark
from crawl4llm.crawl.reorder_buffer import Answer, Hop
from crawl4llm.frontier import Lease, Outcome

NAME = "answers.spool"

_HEAD = struct.Struct("<QIQI")
_HEADERS, _BODIES = ("request_headers", "headers"), ("request_body", "body")
_PLAIN = [field.name for field in fields(Capture) if field.name not in {*_HEADERS, *_BODIES}]
"""Fields of an exchange that are written to JSON unchanged; those of a page follow."""
_PLAIN_OF_PAGE = ("key", "url", "date", "text", "language", "hops", "opt_outs", "follows", "noindex")
_SAME = "body"
"""Stands for HTML that equals the body of the page's own exchange, which is written only once."""


def _is_latin(text: str) -> bool:
    """Return whether each character stands for one byte."""
    return max(text, default="") <= "\xff"


_FIELDS: Final = [(Where({str}, _is_latin), Where({str}, _is_latin))]
_CAPTURE: Final = {
    **{name: {str} for name in ("url", "date", "method", "reason")},
    "status": whole(),
    "exact_headers": FLAG,
    "body_is_decoded": FLAG,
    **dict.fromkeys(("protocol", "ip_address", "robots"), Maybe({str})),
    "truncated": Maybe(set(get_args(Truncation))),
    "milliseconds": Maybe(whole()),
    **dict.fromkeys(_HEADERS, _FIELDS),
    **dict.fromkeys(_BODIES, whole()),
}
_PAGE: Final = Where(
    {
        "key": {str},
        "url": {str},
        **dict.fromkeys(("date", "text", "language"), Maybe({str})),
        "hops": [{str}],
        "opt_outs": {str},
        "follows": FLAG,
        "noindex": FLAG,
        "head": Maybe(({str}, {str}, [({str}, {str})], [({str}, {str}, {str})])),
        "outlinks": Maybe([({str}, Maybe({str}), {str}, FLAG, {str}, {str})]),
        "html": Maybe({int, _SAME}),
        "captures": [_CAPTURE],
    },
    lambda page: page["captures"] or page["html"] != _SAME,
)
_ANSWER: Final = {
    "key": {str},
    "status": Maybe(whole()),
    "reason": Maybe(LINE),
    "why": Maybe(({str}, Maybe({str}), Maybe({str}))),
    "outcome": Maybe({one.value for one in Outcome}),
    "size": whole(),
    "page": Maybe(_PAGE),
}
_HOP: Final = {"key": {str}, "hop": {str}, "captures": [_CAPTURE]}
"""The shapes of the JSON of an answer, and of a fetch that redirects have led elsewhere; the file may come from
anybody."""


class _Record(NamedTuple):
    token: int
    told: dict[str, Any]
    bodies: bytes
    end: int


class AnswerSpool:
    """Implements :class:`crawl4llm.crawl.reorder_buffer.Spool` in one file, which only its owner may read.

    Merged answers stay in the file until a commit, because after ``kill -9`` they are merged again.
    """

    def __init__(self, path: Path) -> None:
        """Open or make the file. Raises ArchiveError."""
        self._file = AppendFile(path, path.stat().st_size if path.exists() else None, private=True)
        self._places: dict[int, int] = {}
        """Offsets of the answers that are waited for, by token."""

    def put(self, answer: Answer) -> None:
        bodies: list[bytes] = []
        told = {
            "key": answer.lease.entry.key,
            "status": answer.status,
            "reason": answer.reason,
            "why": answer.why,
            "outcome": answer.outcome and answer.outcome.value,
            "size": answer.size,
            "page": answer.page and _page_as_json(answer.page, bodies),
        }
        self._places[answer.lease.token] = self._append(answer.lease, told, bodies)
        answer.page, answer.spooled = None, True

    def put_hop(self, lease: Lease, hop: Hop) -> None:
        bodies: list[bytes] = []
        captures = [_capture_as_json(capture, bodies) for capture in hop.captures]
        self._append(lease, {"key": lease.entry.key, "hop": hop.url, "captures": captures}, bodies)

    def restore(self, answer: Answer) -> None:
        with self._opened() as file:
            record = _read(file, self._places.pop(answer.lease.token), self._file.size)
        if record is None or "hop" in record.told:
            raise ArchiveError(f"{self._file.path} is damaged; remove it, and the crawl requests its pages again")
        answer.status, answer.reason = record.told["status"], record.told["reason"]
        answer.why = record.told["why"] and Why(*record.told["why"])
        answer.outcome = record.told["outcome"] and Outcome(record.told["outcome"])
        answer.page = record.told["page"] and _page(record.told["page"], BytesIO(record.bodies))

    def recall(self, answers: Iterable[Answer]) -> tuple[list[Answer], dict[int, Hop]]:
        """See :meth:`~crawl4llm.crawl.reorder_buffer.Spool.recall`; damaged records and those of other leases are left
        out."""
        waiting = {answer.lease.token: answer for answer in answers}
        hops: dict[int, Hop] = {}
        place = 0
        with self._opened() as file:
            while (record := _read(file, place, self._file.size)) is not None:
                answer = waiting.get(record.token)
                if answer is not None and record.told.get("key") == answer.lease.entry.key:
                    if "hop" in record.told:
                        bodies = BytesIO(record.bodies)
                        captures = tuple(_capture(one, bodies) for one in record.told["captures"])
                        hops[record.token] = Hop(record.told["hop"], captures)
                    else:
                        self._places[record.token] = place
                        answer.size = record.told["size"]
                place = record.end
        self._file.cut(place if self._places or hops else 0)
        return [waiting[token] for token in self._places], hops

    def sync(self) -> None:
        self._file.sync()

    def empty(self) -> None:
        if self._file.size:
            self._file.cut(0)

    def close(self) -> None:
        """Close the file. Raises ArchiveError."""
        self._file.close()

    def _append(self, lease: Lease, told: Mapping[str, Any], bodies: list[bytes]) -> int:
        text, body = json.dumps(told).encode(), b"".join(bodies)
        head = _HEAD.pack(lease.token, len(text), len(body), zlib.crc32(body, zlib.crc32(text)))
        return self._file.append(head + text + body)

    def _opened(self) -> BinaryIO:
        with as_input_error(f"cannot read {self._file.path}", ArchiveError):
            return self._file.path.open("rb")


def _read(file: BinaryIO, place: int, size: int) -> _Record | None:
    """Return the record at an offset in a file of ``size`` bytes; None if it is incomplete."""
    file.seek(place)
    head = file.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    token, text_bytes, body_bytes, checksum = _HEAD.unpack(head)
    end = place + _HEAD.size + text_bytes + body_bytes
    if end > size:
        return None
    text, bodies = file.read(text_bytes), file.read(body_bytes)
    if zlib.crc32(bodies, zlib.crc32(text)) != checksum:
        return None
    told = json_or_none(text)
    shape = _HOP if isinstance(told, dict) and "hop" in told else _ANSWER
    return _Record(token, told, bodies, end) if fits([told], shape) else None


def _page_as_json(page: PageRecord, bodies: list[bytes]) -> dict[str, Any]:
    told: dict[str, Any] = {name: getattr(page, name) for name in (*_PLAIN_OF_PAGE, "head", "outlinks", "html")}
    told["captures"] = [_capture_as_json(capture, bodies) for capture in page.captures]
    if page.html is not None and page.captures and page.html == page.captures[-1].body:
        told["html"] = _SAME
    elif page.html is not None:
        told["html"] = len(page.html)
        bodies.append(page.html)
    return told


def _page(told: Mapping[str, Any], bodies: BytesIO) -> PageRecord:
    captures = tuple(_capture(one, bodies) for one in told["captures"])
    html = captures[-1].body if told["html"] == _SAME else None if told["html"] is None else bodies.read(told["html"])
    links = None if told["outlinks"] is None else [Link(*link) for link in told["outlinks"]]
    given = {name: told[name] for name in _PLAIN_OF_PAGE}
    head = None
    if told["head"] is not None:
        canonical, generator, alternates, marks = told["head"]
        head = PageHead(canonical, generator, tuple(map(tuple, alternates)), tuple(Mark(*mark) for mark in marks))
    return PageRecord(**given, head=head, html=html, outlinks=links, captures=captures)


def _capture_as_json(capture: Capture, bodies: list[bytes]) -> dict[str, Any]:
    told = {name: getattr(capture, name) for name in _PLAIN}
    for name in _HEADERS:
        told[name] = [[part.decode("latin-1") for part in field] for field in getattr(capture, name)]
    for name in _BODIES:
        told[name] = len(getattr(capture, name))
        bodies.append(getattr(capture, name))
    return told


def _capture(told: Mapping[str, Any], bodies: BytesIO) -> Capture:
    given = {name: told[name] for name in _PLAIN}
    for name in _HEADERS:
        given[name] = [(field.encode("latin-1"), value.encode("latin-1")) for field, value in told[name]]
    for name in _BODIES:
        given[name] = bodies.read(told[name])
    return Capture(**given)
