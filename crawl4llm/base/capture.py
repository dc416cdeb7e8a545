"""One HTTP exchange as it went over the network: what the archive keeps of a fetch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Literal

HeaderFields = Sequence[tuple[bytes, bytes]]
"""Names and values of a message's header fields, in order."""

Truncation = Literal["length", "time", "disconnect", "unspecified"]
"""Why a body is not whole (ISO 28500:2017, 5.13)."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A request and its response."""

    url: str
    """The URL that was asked for, without its fragment."""
    date: str
    """When the request was sent, UTC: ``2026-11-20T12:00:00.123456Z``."""
    method: str
    request_headers: HeaderFields
    request_body: bytes
    status: int
    reason: str
    headers: HeaderFields
    """The response's, as they came over the wire, Content-Encoding and Transfer-Encoding included where known."""
    exact_headers: bool
    """Whether ``headers`` have the order and case of the wire."""
    body: bytes
    """The entity as sent: after transfer-decoding (RFC 9112, 7), before content-decoding (RFC 9110, 8.4)."""
    body_is_decoded: bool = False
    """Whether the body could be had only after content-decoding, so that Content-Encoding in ``headers`` is untrue."""
    protocol: str | None = None
    """``http/1.0``, ``http/1.1``, ``h2``."""
    ip_address: str | None = None
    truncated: Truncation | None = None
    milliseconds: int | None = None
    """How long it took, from the request's first byte to the response's last."""


def utc_date(seconds_ago: float = 0.0) -> str:
    """The time now, or a little before, to the microsecond, as a WARC-Date has it (ISO 28500:2017, 5.4)."""
    date = datetime.now(timezone.utc) - timedelta(seconds=seconds_ago)
    return date.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
