"""Charsets of HTML, found as browsers do: byte order mark, head of the response, document, detector.

The order is that of the HTML Standard, 13.2.3.2; labels and decoders are those of the Encoding Standard.
"""

from __future__ import annotations

import codecs
import re
from typing import Final, NamedTuple

import webencodings

UTF_8: Final = "utf-8"
_OTHERWISE: Final = "windows-1252"
_PRESCANNED: Final = 4096
"""Bytes in which a document may declare its charset. The standard has 1,024; pages with long heads need more."""
_DETECTED: Final = 1 << 16
"""First bytes from which the charset of an undeclared document is detected, in 3 ms."""
MARKS: Final = {codecs.BOM_UTF8: UTF_8, codecs.BOM_UTF16_LE: "utf-16le", codecs.BOM_UTF16_BE: "utf-16be"}
"""Byte order marks, and the charset that each shows."""
UNMARKED: Final = {b"<\0?\0": "utf-16le", b"\0<\0?": "utf-16be"}
"""Beginnings of an XML declaration in UTF-16 without a byte order mark."""
_ESCAPE: Final = b"\x1b"
"""Begins the escape sequences that tell ISO-2022-JP from ASCII."""
_PREFERRED: Final = {"gbk": "gb18030"}
"""GBK is decoded as GB 18030 (Encoding Standard, 10.1.1); Python has a narrower codec for it."""

_OF_TYPE = re.compile(r"""charset\s*=\s*["']?\s*([^\s;,"']+)""", re.IGNORECASE)
_OF_META = re.compile(rb"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^\t\n\f\r ;]*))""", re.IGNORECASE)
_OF_XML = re.compile(rb"""<\?xml[^>]*?[\t\n\f\r ]encoding[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^">]*)"|'([^'>]*)')""")
_TAG = re.compile(
    rb"<(?:!--(?:>|->|.*?(?:-->|\Z))"
    rb"|(?P<meta>meta)(?=[\t\n\f\r /])"
    rb"|(?P<other>/?[a-z][^\t\n\f\r >]*)"
    rb"|[!/?][^>]*>)",
    re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    rb"[\t\n\f\r /]*(?P<name>=?[^\t\n\f\r />=]+|=)"
    rb"(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:\"([^\"]*)\"|'([^']*)'|([^\t\n\f\r >\"'][^\t\n\f\r >]*)?))?"
)


class Html(NamedTuple):
    """A document that was decoded."""

    data: bytes
    """In UTF-8."""
    charset: str = UTF_8
    """The charset in which it came, by its name in the Encoding Standard; queries of its links are encoded in it."""


def html_in_utf8(body: bytes, content_type: str = "") -> Html:
    """Return an HTML document in UTF-8; bytes that its charset does not have become U+FFFD.

    ``content_type``: the Content-Type of the response. A document that declares no charset is UTF-8 if all of its bytes
    fit; its last character may be cut off. Otherwise its charset is detected.
    """
    mark = next(filter(body.startswith, MARKS), b"")
    body, charset = body[len(mark) :], MARKS.get(mark)
    charset = charset or _of_type(content_type) or _declared(body[:_PRESCANNED]) or _detected(body)
    if charset == UTF_8:
        try:
            body.decode()
        except UnicodeDecodeError:
            return Html(body.decode(UTF_8, "replace").encode(), charset)
        return Html(body, charset)
    if charset == "replacement":  # one character, whatever there is (14.1): such encodings were used for attacks
        return Html("\ufffd".encode() if body else b"", charset)
    return Html(codec_of(charset).decode(body, "replace")[0].encode(), charset)


def codec_of(charset: str) -> codecs.CodecInfo:
    """Return the codec of a charset, given by its name in the Encoding Standard."""
    found: codecs.CodecInfo = webencodings.lookup(_PREFERRED.get(charset, charset)).codec_info
    return found


def name_of(label: str) -> str | None:
    """Return the name that the Encoding Standard gives to a charset's label (4.2); None if it has none."""
    found = webencodings.lookup(label)
    return None if found is None else str(found.name)


def _of_type(content_type: str) -> str | None:
    found = _OF_TYPE.search(content_type)
    return name_of(found[1]) if found else None


def _declared(head: bytes) -> str | None:
    """Return the charset that a ``meta`` or an XML declaration at the beginning of a document names (HTML Standard,
    13.2.3.2, prescan)."""
    if (start := head[:4]) in UNMARKED:
        return UNMARKED[start]
    at = 0
    while tag := _TAG.search(head, at):
        at = tag.end()
        if not (tag["meta"] or tag["other"]):
            continue
        attributes: dict[bytes, bytes] = {}
        while one := _ATTRIBUTE.match(head, at):
            at = one.end()
            attributes.setdefault(one["name"].lower(), one[2] or one[3] or one[4] or b"")
        if tag["meta"] and (charset := _of_attributes(attributes)):
            return charset
    xml = _OF_XML.match(head)
    return declared_charset(xml[1] or xml[2] or b"") if xml else None


def _of_attributes(attributes: dict[bytes, bytes]) -> str | None:
    """Return the charset that a ``meta`` declares."""
    if b"charset" in attributes:
        return declared_charset(attributes[b"charset"])
    if attributes.get(b"http-equiv", b"").lower() != b"content-type":
        return None
    found = _OF_META.search(attributes.get(b"content", b""))
    return declared_charset(found[1] or found[2] or found[3] or b"") if found else None


def declared_charset(label: bytes) -> str | None:
    """Return the charset that a label in a document names; UTF-8 for UTF-16, in which no label could be read."""
    name = name_of(label.decode("latin-1"))
    if name in {"utf-16le", "utf-16be"}:
        return UTF_8
    return _OTHERWISE if name == "x-user-defined" else name


def _detected(body: bytes) -> str:
    try:
        body.decode()
        if _ESCAPE not in body[:_DETECTED]:
            return UTF_8
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and not body[: error.start].isascii():
            return UTF_8
    import chardetng_py  # most crawls meet no such page

    detector = chardetng_py.EncodingDetector()
    detector.feed(body[:_DETECTED], last=len(body) <= _DETECTED)
    return name_of(detector.guess(tld=None, allow_utf8=False)) or _OTHERWISE
