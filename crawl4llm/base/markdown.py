"""Foreign text in Markdown files."""

from __future__ import annotations

import re
from typing import Final

from crawl4llm.base.terminal import harmless

_MARKS: Final = re.compile(r"[\\`*_{}\[\]<>()#!|~$&:@]|(?<=www)\.")
_LONGEST: Final = 200


def cell(text: object) -> str:
    """Return a value as it stands in a table's cell: on one line, of at most 200 characters, without any markup.

    A backslash before ASCII punctuation makes a character of it (CommonMark 0.31, 2.4); it also ends what GitHub would
    take for an address.
    """
    encodable = str(text).encode(errors="backslashreplace").decode()  # a name of a file may be no UTF-8
    line = " ".join(harmless(encodable).split())
    line = line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."
    return _MARKS.sub(r"\\\g<0>", line) or "-"
