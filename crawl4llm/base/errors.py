"""The errors that a user, a page or a record can cause."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from crawl4llm.base import reasons

logger = logging.getLogger(__name__)


class InputError(Exception):
    """Something the user gave cannot be used.

    The message is one line that names the file, setting or URL and says what to do. Commands print it
    without a traceback and exit with a non-zero status.
    """


class NothingToDo(InputError):
    """All that was asked for is done already; commands say so and exit with status 0."""


class MachineError(InputError):
    """A resource of this machine is exhausted; no page, file or setting is to blame. Work stops and can be resumed
    later."""


class PageError(Exception):
    """A page that cannot be fetched or read; the crawl counts ``reason`` and continues."""

    reason = reasons.ERROR


class Why(NamedTuple):
    """The rule by which a document has no page, and the archived record that contains it, if any."""

    rule: str
    """A line of robots.txt, a signal with its value, a status, a setting, or a list with the number of its line."""
    digest: str | None = None
    """WARC-Payload-Digest of that record, as the index has it."""
    time: str | None = None
    """Its WARC-Date, when the request was sent."""


class NoPage(PageError):
    """A document without a page, with its own reason; ``wanted`` is False if it is dropped rather than failed."""

    def __init__(self, message: str, reason: str, *, wanted: bool = True, why: Why | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.wanted = wanted
        self.why = why


class TooLarge(NoPage):
    """A page larger than DOWNLOAD_MAXSIZE, of which only that many bytes were read; it is dropped."""

    reason = reasons.TOO_LARGE

    def __init__(self, message: str) -> None:
        super().__init__(message, self.reason, wanted=False)


class Bomb(NoPage):
    """A page whose body unpacks to far more bytes than any real page; it fails."""

    def __init__(self, message: str) -> None:
        super().__init__(message, reasons.BOMB)


class MissingRecord(PageError):
    """The corpus does not hold the document (answered 404)."""

    reason = "http_404"


class NoHtml(MissingRecord):
    """The corpus holds only the text of a document whose HTML is wanted."""

    reason = reasons.NO_HTML


class CorruptRecord(PageError):
    """The document's record is damaged: a broken gzip member, JSON or WARC record."""

    reason = reasons.CORRUPT_RECORD


@contextmanager
def as_input_error(
    what: str,
    kind: type[Exception] = InputError,
    form: str = "{}: {}",
    errors: type[Exception] | tuple[type[Exception], ...] = OSError,
) -> Iterator[None]:
    """Turn an OSError, or other ``errors``, into an InputError or another ``kind``: one line with ``what`` cannot be
    done, and the reason.

    >>> with as_input_error("/corpus cannot be read"):
    ...     raise PermissionError(13, "Permission denied")
    Traceback (most recent call last):
    crawl4llm.base.errors.InputError: /corpus cannot be read: Permission denied
    """
    try:
        yield
    except errors as error:
        raise kind(form.format(what, getattr(error, "strerror", None) or error)) from error


@contextmanager
def reading(page: str) -> Iterator[None]:
    """Turn an unanticipated error while a page is read into a PageError of that page, and log it in full. Errors of the
    page, of input, of files and of memory are left as they are."""
    try:
        yield
    except (PageError, InputError, OSError, MemoryError):
        raise
    except Exception as error:
        logger.exception("Cannot read %s", page)
        raise PageError(f"{page}: {error!r}") from error
