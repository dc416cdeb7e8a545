"""Reads answers: Twisted's parser with a tap that accepts the heads that browsers accept, and limits what a server
sends.

Twisted ends an exchange for heads that browsers read. Here a head is read as Chromium's ``HttpResponseHeaders`` and
the Fetch Standard do:

- A line may be as long as the whole head, 256 KiB. A line that begins with a blank continues the field before it
  (obs-fold, RFC 9112, 5.2); without such a field it is dropped.
- A line without a colon is no field. Blanks between name and colon are dropped (RFC 9112, 5.1). A field whose name is
  no token is archived and has no effect.
- A status line may lack the version's numbers and have more blanks. Empty lines may precede it.
- A Content-Length that is not digits is ignored: the body ends with the connection. Different ones end the exchange
  (Fetch, "extract a length"), unless the body is chunked (RFC 9112, 6.3).
- The transfer coding ``identity`` of RFC 2616 is ignored. :mod:`crawl4llm.base.chunked` reads chunks. Requests announce
  no other coding (TE), and an answer with one fails.

The tap depends on these names; tests/live/test_wire.py checks them against the installed versions:

- Twisted: ``Response._bodyDataReceived`` and ``_bodyDataFinished``, which receive the parts of the body and its end.
  ``HTTPClientParser._transferDecoders``: the classes that undo transfer codings, by name. ``_DataLoss``: raised for an
  incomplete body.
- Public names of classes in Twisted's private module ``twisted.web._newclient``: ``HTTPClientParser.dataReceived``,
  ``line_mode``, ``lineReceived``, ``statusReceived``, ``headerReceived``, ``allHeadersReceived``, ``rawDataReceived``,
  ``connectionLost``, ``lineLengthExceeded``, ``MAX_LENGTH``, ``connHeaders`` and ``response``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from scrapy.exceptions import DownloadFailedError
from twisted.web.http import _DataLoss
from twisted.web.http_headers import Headers

from crawl4llm.base.chunked import Chunks

_LONGEST_HEAD: Final = 256 << 10
"""Bytes of the head of an answer, with those of interim answers before it; browsers take as many."""
_LINE_OVERHEAD: Final = 32
"""Bytes that a line counts for besides its own (RFC 9113, 6.5.2): many short ones take more memory than a long one."""
_CLOSING_SECONDS: Final = 5.0
"""Seconds that a server may take to close its side of a TLS connection."""
_STATUS_LINE = re.compile(
    rb"HTTP(?:/(\d{1,4})(?:\.(\d{1,4}))?)?[ \t]+(\d{3})(?!\d)[ \t]*(.*)", re.IGNORECASE | re.DOTALL
)
_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LENGTH = re.compile(rb"\d{1,17}")
_CONTENT_LENGTH, _TRANSFER_ENCODING = b"content-length", b"transfer-encoding"
_CHUNKED: Final = b"chunked"


@dataclass(slots=True)
class Exchange:
    """The heads of a request and of its response."""

    date: str
    """Time at which the request was sent."""
    started: float
    """The same by the monotonic clock, in seconds."""
    request_head: bytes = b""
    status_line: bytes = b""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    """The response's; a value without the white space around it, one of several lines joined (RFC 9112, 5.1, 5.2)."""
    ip_address: str | None = None

    @property
    def request_headers(self) -> list[tuple[bytes, bytes]]:
        """The request's header fields."""
        lines = self.request_head.split(b"\r\n")[1:]
        return [(name, value) for name, colon, value in (line.partition(b": ") for line in lines) if colon]


class AnswerTap:
    """Stands between a connection's parser and its callbacks for one answer. It reads and records the head, and limits
    the work that a server can cause."""

    def __init__(self, connection: Any, exchange: Exchange, *, closes: bool) -> None:
        """Begin; ``closes`` if the connection ends with the answer."""
        self._exchange = exchange
        self._transport = connection.transport
        self._head_left = self._line_left = _LONGEST_HEAD
        self._has_status = False
        self._line_parts: list[bytes] = []
        """Of a line whose end has not come; Twisted would search all of it for each byte that comes."""
        self._field: list[bytes] = []
        """The lines of a field whose end has not come."""
        self._parts: list[bytes] = []
        """Of the body, not yet handed on."""
        self._parser = parser = connection._parser
        parser.MAX_LENGTH, parser.lineLengthExceeded = 2 * _LONGEST_HEAD, self._refuse
        self._data, parser.dataReceived = parser.dataReceived, self._receive_data
        parser._transferDecoders = {_CHUNKED: _ChunkedBody}
        self._line, parser.lineReceived = parser.lineReceived, self._receive_line
        self._status, parser.statusReceived = parser.statusReceived, self._receive_status
        self._raw, parser.rawDataReceived = parser.rawDataReceived, self._receive_raw
        if closes:
            self._lost, parser.connectionLost = parser.connectionLost, self._lose

    def _receive_data(self, data: bytes) -> None:
        """Receive bytes from the connection, whole lines of the head at once."""
        if not self._parser.line_mode:
            self._data(data)
            return
        self._line_parts.append(data)
        if b"\n" in data:
            data = b"".join(self._line_parts)
            self._line_parts.clear()
            self._line_left = self._head_left
            self._data(data)
        else:
            self._data(b"")  # notes that the server has answered
            self._line_left -= len(data)
            if self._line_left < 0:
                self._refuse(data)

    def _receive_line(self, line: bytes) -> None:
        """Take a line of the head. Raises DownloadFailedError if that is too long, which ends the exchange."""
        self._head_left -= len(line) + _LINE_OVERHEAD
        if self._head_left < 0:
            self._refuse(line)
        line = line.removesuffix(b"\r")
        if not self._has_status:
            if line:
                self._line(_status_line(line))
        elif line.startswith((b" ", b"\t")):
            if self._field:
                self._field.append(line)
        else:
            self._end_field()
            self._field = [line]
            if not line:
                self._end_head()

    def _refuse(self, _: bytes) -> None:
        self._transport.abortConnection()  # a server that goes on sending would be read until it stops
        raise DownloadFailedError("the head of the answer is too long")

    def _receive_status(self, line: bytes) -> None:
        self._has_status, self._field = True, []
        self._exchange.status_line = line
        self._exchange.headers.clear()  # an interim response came before (RFC 9110, 15.2)
        self._status(line)
        response = self._parser.response
        self._body, response._bodyDataReceived = response._bodyDataReceived, self._parts.append
        self._finish, response._bodyDataFinished = response._bodyDataFinished, self._finish_body

    def _end_field(self) -> None:
        name, colon, value = b" ".join(line.strip() for line in self._field).partition(b":")
        if not colon:
            return
        name, value = name.rstrip(b" \t"), value.strip()
        self._exchange.headers.append((name, value))
        if _TOKEN.fullmatch(name):  # Twisted raises for others
            self._parser.headerReceived(name, value)

    def _end_head(self) -> None:
        """Let the parser go on with the body. Raises DownloadFailedError if nobody can say where it ends."""
        self._has_status = self._parser.response.code >= 200  # else another head follows
        try:
            if self._has_status:
                mend_framing(self._parser.connHeaders)
        except ValueError as error:
            self._transport.abortConnection()
            raise DownloadFailedError(str(error)) from None
        self._parser.allHeadersReceived()

    def _receive_raw(self, data: bytes) -> None:
        """Receive bytes of the body; as one part, because each part sends a signal, and a chunk may be one byte."""
        self._raw(data)
        self._hand_on()

    def _finish_body(self, *reason: Any) -> None:
        self._hand_on()
        self._finish(*reason)

    def _hand_on(self) -> None:
        if self._parts:
            data = b"".join(self._parts)
            self._parts.clear()
            self._body(data)

    def _lose(self, reason: Any) -> None:
        """End the exchange; a connection that its server does not close is ended too."""
        self._lost(reason)
        asyncio.get_running_loop().call_later(_CLOSING_SECONDS, _abort_open, self._transport)


class _ChunkedBody:
    """Undoes the chunks of a body, with the interface of Twisted's decoders."""

    def __init__(self, take: Callable[[bytes], None], finish: Callable[[bytes], None]) -> None:
        self._chunks, self._take, self._finish = Chunks(), take, finish

    def dataReceived(self, data: bytes) -> None:  # noqa: N802 - Twisted's name
        for part in self._chunks.feed(data):
            self._take(part)
        if self._chunks.beyond is not None:
            self._finish(self._chunks.beyond)

    def noMoreData(self) -> None:  # noqa: N802 - Twisted's name
        if self._chunks.beyond is None:
            raise _DataLoss("the chunked body breaks off")


def mend_framing(headers: Headers) -> None:
    """Reduce the fields that say where a body ends to those that Twisted understands. Raises ValueError for a transfer
    coding that cannot be undone, and for lengths that differ."""
    codings = {coding.lower() for coding in _values(headers, _TRANSFER_ENCODING)} - {b"", b"identity"}
    if codings - {_CHUNKED}:
        raise ValueError("the answer has an unrequested transfer coding")
    headers.removeHeader(_TRANSFER_ENCODING)
    if codings:
        headers.setRawHeaders(_TRANSFER_ENCODING, [_CHUNKED])
        return
    lengths = _values(headers, _CONTENT_LENGTH)
    different = {int(length) if _LENGTH.fullmatch(length) else length for length in lengths}
    if len(different) > 1:
        raise ValueError("the head of the answer has different lengths")
    if not all(_LENGTH.fullmatch(length) for length in lengths):
        headers.removeHeader(_CONTENT_LENGTH)


def _values(headers: Headers, name: bytes) -> list[bytes]:
    """Return the members of a list, which may stand in several fields (RFC 9110, 5.3)."""
    fields = headers.getRawHeaders(name, [])
    return [value.strip() for given in fields for value in given.split(b",")]


def _status_line(line: bytes) -> bytes:
    """Return a status line as the grammar has it (RFC 9112, 4), if it can be read as one."""
    found = _STATUS_LINE.fullmatch(line)
    if found is None:
        return line
    major, minor, status, reason = found.groups(b"")
    return b"HTTP/%b.%b %b %b" % (major or b"1", minor or b"0", status, reason)


def _abort_open(transport: Any) -> None:
    if transport.connected:
        transport.abortConnection()
