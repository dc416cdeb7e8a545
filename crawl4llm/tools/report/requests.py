"""The requests in the log of a crawl, as they are reported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tqdm import tqdm

from crawl4llm.base.crawl_log import FAILURES
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import parse_json
from crawl4llm.crawl import REQUESTS, JobDir, days, find_output, lines

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LARGEST = 2**53


class Request(NamedTuple):
    """A line of the log; see :class:`crawl4llm.live.request_log.RequestLog`."""

    time: str
    owner: str
    url: str
    purpose: str
    status: int | None
    error: str | None
    size: int
    milliseconds: int
    waited: float | None
    rule: str | None
    price: str | None = None
    """The price in a 402 response; see :data:`crawl4llm.live.request_log.PRICES`."""
    sent: bool = True
    """False if no byte of it went out."""

    @property
    def day(self) -> str:
        """The day on which it was sent, in UTC."""
        return self.time[:10]

    @property
    def outcome(self) -> str:
        """The status, or the reason for its absence."""
        return str(self.status or self.error or "?")


def is_merged(path: Path) -> bool:
    """Return whether a folder is the merged run of a crawl by several workers, which has its request log."""
    return (path / FAILURES).is_file() and (path / REQUESTS).is_dir()


@dataclass
class Log:
    """The log of a crawl, which may be running, from a day on. Raises InputError if there is no log."""

    jobdir: Path
    since: str | None = None
    damaged: int = 0
    """Lines that were passed over: they are no requests."""

    def __post_init__(self) -> None:
        self._job = None if is_merged(self.jobdir) else JobDir(self.jobdir, lock=False).job
        if self.since is not None:
            checked_day(self.since)
        try:
            self._days: Sequence[str] = days(self.jobdir)
        except InputError as error:
            raise InputError(
                f"JOBDIR {self.jobdir} has no log of requests ({error}); live crawls keep one (RequestLog)"
            ) from None

    def output(self, settings: BaseSettings) -> Path:
        """Return the output directory of the crawl, or its new place in OUTPUT_DIR. Raises InputError."""
        return self.jobdir if self._job is None else find_output(self.jobdir, self._job, settings.get("OUTPUT_DIR"))

    def requests(self, owner: str | None = None) -> Iterator[Request]:
        """Yield the requests, of one owner if it is given, in the order in which they ended."""
        needle = b"" if owner is None else b'"owner": %b,' % json.dumps(owner).encode()
        for day in tqdm(self._days, "Reading", unit=" days", disable=None):
            if self.since is not None and day < self.since:
                continue
            for line in lines(self.jobdir, day):
                if needle in line and (request := self._parse(line)) and (owner is None or request.owner == owner):
                    yield request

    def _parse(self, line: bytes) -> Request | None:
        try:
            request = _request(parse_json(line))
        except (AttributeError, TypeError, ValueError):
            self.damaged += 1
            return None
        return request


def checked_day(text: str) -> str:
    """Return a day of the calendar. Raises InputError for any other text."""
    try:
        is_day = date.fromisoformat(text) and _DAY.fullmatch(text)
    except ValueError:
        is_day = None
    if not is_day:
        raise InputError(f"--since {text!r} is not a day like 2026-05-31")
    return text


def _request(fields: Any) -> Request:
    """Return the request in a line. Raises AttributeError, TypeError or ValueError if it is no request."""
    names = ("time", "owner", "url", "for", "status", "error", "bytes", "ms", "waited", "rule", "price", "sent")
    request = Request(*map(fields.get, names))
    texts = [request.time, request.owner, request.url, request.purpose]
    texts += [text or "" for text in (request.error, request.rule, request.price)]
    numbers = (request.status or 0, request.size, request.milliseconds, request.waited or 0)
    sound = all(map(str.isprintable, texts)) and all(-_LARGEST < number < _LARGEST for number in numbers)
    if not sound or not isinstance(request.sent, bool):
        raise ValueError("no request")
    return request
