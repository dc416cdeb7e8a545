"""Outcomes of downloads that brought no page: how the document ends, and the reason that is counted."""

from __future__ import annotations

import gzip
import os
import zlib
from typing import Final

from OpenSSL import SSL
from scrapy.exceptions import IgnoreRequest

from crawl4llm.base import reasons
from crawl4llm.base.errors import MachineError, NoPage, PageError
from crawl4llm.base.files import check_machine
from crawl4llm.frontier import Outcome
from crawl4llm.live.certificates import NAMELESS

_EXCEPTIONS: Final = {
    reasons.DNS: "CannotResolveHostError DNSLookupError",
    reasons.TIMEOUT: "DownloadTimeoutError TimeoutError TCPTimedOutError",
    reasons.REFUSED: "DownloadConnectionRefusedError ConnectionRefusedError",
    reasons.TOO_LARGE: "DownloadCancelledError CancelledError",
    reasons.CUT_SHORT: "ResponseDataLossError",
    reasons.CONNECTION: "DownloadFailedError ResponseFailed ResponseNeverReceived ConnectionLost ConnectionDone "
    "ConnectError NoRouteError TunnelError",
    reasons.SCHEME: "UnsupportedURLSchemeError NotSupported",
}
_REASONS: Final = {name: reason for reason, names in _EXCEPTIONS.items() for name in names.split()}
"""By the names of exceptions: before version 2.15 Scrapy raised Twisted's, which have other names."""

_UNVERIFIED: Final = "certificate verify failed"
"""OpenSSL's errors for a certificate chain that has expired or leads to no authority that this machine trusts."""

_BROKEN_CODINGS: Final = {"brotli.error", "backports.zstd.ZstdError", "compression.zstd.ZstdError"}
"""Errors of Scrapy's decompression, besides gzip's and zlib's errors; not each of these packages is installed."""


def verdict(error: BaseException) -> tuple[Outcome, str] | None:
    """Return how a document ends that could not be downloaded, and why; None for an error that was not anticipated."""
    if isinstance(error, NoPage):
        return Outcome.FAILED if error.wanted else Outcome.DROPPED, error.reason
    if isinstance(error, PageError):
        return Outcome.FAILED, error.reason
    if isinstance(error, IgnoreRequest):
        return Outcome.DROPPED, _said(error)
    if isinstance(error, (gzip.BadGzipFile, zlib.error)):
        return Outcome.FAILED, reasons.DAMAGED
    if _is_of_a_certificate(error):
        return Outcome.FAILED, reasons.CERTIFICATE
    for kind in type(error).__mro__:
        if f"{kind.__module__}.{kind.__name__}" in _BROKEN_CODINGS:
            return Outcome.FAILED, reasons.DAMAGED
        if reason := _REASONS.get(kind.__name__):
            return Outcome.DROPPED if reason == reasons.TOO_LARGE else Outcome.FAILED, reason
    return None


def _is_of_a_certificate(error: BaseException) -> bool:
    """Return whether a connection failed because the certificate did not verify, or is not for the host."""
    causes: list[BaseException] = [cause for cause in (error, error.__cause__) if cause is not None]
    for cause in causes:
        if isinstance(cause, NAMELESS) or (isinstance(cause, SSL.Error) and _UNVERIFIED in str(cause)):
            return True
        causes += [failure.value for failure in getattr(cause, "reasons", ())]  # of Twisted's ResponseFailed
    return False


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
    """Return why Scrapy's middlewares dropped a request, from the words of their message."""
    message = str(error)
    if "robots.txt" in message:
        return reasons.ROBOTS
    return reasons.TOO_LARGE if "DOWNLOAD_MAXSIZE" in message else reasons.IGNORED
