"""What becomes of a document whose download brought no page, and why, as it is counted."""

from __future__ import annotations

import gzip
import os
import zlib
from typing import Final

from scrapy.exceptions import IgnoreRequest

from crawl4llm.base.errors import MachineError, NoPage, PageError
from crawl4llm.base.input_files import check_machine
from crawl4llm.base.reasons import (
    CONNECTION,
    CUT_SHORT,
    DAMAGED,
    DNS,
    IGNORED,
    REFUSED,
    ROBOTS,
    SCHEME,
    TIMEOUT,
    TOO_LARGE,
)
from crawl4llm.frontier import Outcome

_DOWNLOAD_ERRORS: Final = {
    "CannotResolveHostError": DNS,
    "DNSLookupError": DNS,
    "DownloadTimeoutError": TIMEOUT,
    "TimeoutError": TIMEOUT,
    "TCPTimedOutError": TIMEOUT,
    "DownloadConnectionRefusedError": REFUSED,
    "ConnectionRefusedError": REFUSED,
    "DownloadCancelledError": TOO_LARGE,
    "CancelledError": TOO_LARGE,
    "ResponseDataLossError": CUT_SHORT,
    "DownloadFailedError": CONNECTION,
    "ResponseFailed": CONNECTION,
    "ResponseNeverReceived": CONNECTION,
    "ConnectionLost": CONNECTION,
    "ConnectionDone": CONNECTION,
    "ConnectError": CONNECTION,
    "NoRouteError": CONNECTION,
    "TunnelError": CONNECTION,
    "UnsupportedURLSchemeError": SCHEME,
    "NotSupported": SCHEME,
}
"""By the names of exceptions: before version 2.15 Scrapy raised Twisted's, which have other names."""

_BROKEN_CODINGS: Final = {"brotli.error", "backports.zstd.ZstdError", "compression.zstd.ZstdError"}
"""What Scrapy's decompression raises, besides gzip's and zlib's errors; not each of these packages is installed."""


def verdict(error: BaseException) -> tuple[Outcome, str] | None:
    """How a document ends that could not be downloaded, and why; None for an error that was not anticipated."""
    if isinstance(error, NoPage):
        return Outcome.FAILED if error.wanted else Outcome.DROPPED, error.reason
    if isinstance(error, PageError):
        return Outcome.FAILED, error.reason
    if isinstance(error, IgnoreRequest):
        return Outcome.DROPPED, _said(error)
    if isinstance(error, (gzip.BadGzipFile, zlib.error)):
        return Outcome.FAILED, DAMAGED
    for kind in type(error).__mro__:
        if f"{kind.__module__}.{kind.__name__}" in _BROKEN_CODINGS:
            return Outcome.FAILED, DAMAGED
        if reason := _DOWNLOAD_ERRORS.get(kind.__name__):
            return Outcome.DROPPED if reason == TOO_LARGE else Outcome.FAILED, reason
    return None


def machine_error(error: BaseException) -> MachineError | None:
    """Return the error of this machine that a failed connection stands for, such as too many open files."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(number := getattr(cause, "osError", None), int):  # Twisted's name
            try:
                check_machine(OSError(number, os.strerror(number)))
            except MachineError as machine:
                return machine
        cause = cause.__cause__
    return None


def _said(error: IgnoreRequest) -> str:
    """Why Scrapy's middlewares dropped a request, which they say in words."""
    message = str(error)
    if "robots.txt" in message:
        return ROBOTS
    return TOO_LARGE if "DOWNLOAD_MAXSIZE" in message else IGNORED
