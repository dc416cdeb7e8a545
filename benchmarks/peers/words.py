"""Words of source files in C++ and Java, and of protocol buffers as text: literals, numbers, names and signs."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_WORD = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/)|(?P<block>"""\n.*?""")|(?P<text>"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\')'
    r"|(?P<number>\d[\d_]*(?:\.\d+)?)[LfF]?|(?P<name>[A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)|(?P<sign>->|==|!=|<=|>=|::|\S)",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|([0-7]{1,3})|(.))")
_ESCAPED: Final = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


class Word(NamedTuple):
    """A word of a source file; ``value`` is that of a literal."""

    kind: str
    text: str
    value: Any = None


def words_of(source: str, *, octets: bool = False) -> Iterator[Word]:
    """Yield the words of a source file, without comments."""
    for found in _WORD.finditer(source):
        kind = str(found.lastgroup)
        if kind == "skip":
            continue
        if kind == "block":
            text = textwrap.dedent(found[0][4:-3].rpartition("\n")[0] + "\n")
            yield Word("text", found[0], _unescaped(text, octets=octets))
        elif kind == "text":
            yield Word(kind, found[0], _unescaped(found[0][1:-1], octets=octets))
        elif kind == "number":
            digits = found["number"].replace("_", "")
            yield Word(kind, digits, float(digits) if "." in digits else int(digits))
        else:
            yield Word(kind, found[0])


def _unescaped(text: str, *, octets: bool) -> str:
    if octets:
        text = text.encode().decode("latin-1")

    def replaced(found: re.Match[str]) -> str:
        if code := found[1] or found[2]:
            return chr(int(code, 16))
        return chr(int(found[3], 8)) if found[3] else _ESCAPED.get(found[4], found[4])

    return _ESCAPE.sub(replaced, text)
