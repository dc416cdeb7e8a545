"""Two sets of pages whose main text is known, for benchmarks.text: what extractors keep of it.

- Trafilatura's own evaluation set: pages of a thousand sites, each with pieces of text that belong to its main text
  and pieces that do not, counted as ``tests/eval_common.py`` there counts them.
- The Debian handbook (Debian's package debian-handbook), 127 pages in each of 26 languages. DocBook's tools wrote
  them: paragraphs are ``div`` elements. The main text of a page is that of its main element.

A hash of a page's name divides each set into two halves. The limits of :mod:`crawl4llm.scoring.choosing` were found on
one of them; figures are of the other one.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.corpora import debian_package
from benchmarks.results import Table
from crawl4llm.base.charsets import html_in_utf8
from crawl4llm.base.html_tree import HtmlTree
from crawl4llm.scoring import EXTRACTORS, extract_text, load_extractor

ENGLISH: Final = "en-US"
_HANDBOOK: Final = "usr/share/doc/debian-handbook/html"
_MAIN: Final = "body > div:not(#banner)"
"""The handbook's element of the main text; links to other pages and its title stand beside it."""
_BLOCKS: Final = "div, p, pre, ul, ol, li, dl, dt, dd, table, tr, td, th, h1, h2, h3, h4, h5, h6, blockquote"
_BEGIN: Final = 20
"""Characters without white space by which the beginning of a text is found among those of elements."""
_LOOKED_AT: Final = 40
"""Pages whose texts' beginnings are looked at, in each language."""
_OF_OTHERS: Final = 8
"""Pages in each of the other languages."""


class Outcome(NamedTuple):
    """Counts of an extractor on a set, and what it took."""

    values: Sequence[float | None]
    milliseconds: float
    """CPU time a page."""


def is_reported(name: str) -> bool:
    """Return whether a page is of the half that is reported."""
    return _digest(name)[0] % 2 == 1


def evaluation_set(checkout: Path) -> Table | None:
    """Measure on the evaluation set in a checkout of adbar/trafilatura; None if it is not there."""
    tests = checkout / "tests"
    if not (tests / "evaldata.json").exists():
        return None
    items: dict[str, Any] = json.loads((tests / "evaldata.json").read_text(encoding="utf-8"))
    pages = [(item, _file(tests, item["file"])) for name, item in sorted(items.items()) if is_reported(name)]
    columns = ("", "F1", "precision", "recall", "CPU ms a page")
    rows = [_row(name, _pieces(name, pages)) for name in EXTRACTORS]
    return Table(f"Trafilatura's evaluation set: {len(pages)} of {len(items)} pages", columns, rows)


def handbook() -> tuple[list[Table], str | None]:
    """Measure on the Debian handbook, in English and in other languages; a note says why if it cannot be had."""
    try:
        folder = debian_package("debian-handbook") / _HANDBOOK
    except (OSError, subprocess.CalledProcessError) as error:
        return [], f"Debian's package debian-handbook is not here ({error}): its pages are left out."
    languages = sorted(path.name for path in folder.iterdir())
    others = [path for name in languages if name != ENGLISH for path in _pages(folder / name)[:_OF_OTHERS]]
    tables = [
        _handbook_table("The Debian handbook in English", _pages(folder / ENGLISH)),
        _handbook_table(f"The Debian handbook in {len(languages) - 1} other languages", others),
    ]
    return tables, None


def _pages(folder: Path) -> list[Path]:
    """Return the pages of a language that are reported, in an order by chance."""
    return sorted(filter(_is_reported_file, folder.glob("*.html")), key=lambda path: _digest(path.name))


def _is_reported_file(path: Path) -> bool:
    return is_reported(path.name)


def _digest(name: str) -> bytes:
    return hashlib.sha256(name.encode()).digest()


def _handbook_table(title: str, pages: Sequence[Path]) -> Table:
    columns = ("", "main text kept, median", "least", "kept that is none, median", "mid-sentence", "CPU ms a page")
    looked_at = min(len(pages), _LOOKED_AT * len({page.parent for page in pages}))
    rows = [_row(name, _of_handbook(name, pages)) for name in EXTRACTORS]
    title = f"{title}: {len(pages):,} pages, beginnings of {looked_at:,}"
    return Table(title, columns, rows)


def _row(name: str, outcome: Outcome) -> list[str | float | None]:
    return [name, *outcome.values, outcome.milliseconds]


# -- pieces of text that belong to it, and others ----------------------------------------------------------------------


def _file(tests: Path, name: str) -> bytes:
    """Return a page, in UTF-8."""
    return html_in_utf8(next(filter(Path.is_file, (tests / "cache" / name, tests / "eval" / name))).read_bytes()).data


def _pieces(name: str, pages: Sequence[tuple[dict[str, Any], bytes]]) -> Outcome:
    """Return F1, precision and recall: a piece counts if the text has it, white space apart."""
    found = wrong = wanted = 0
    texts, milliseconds = _texts(name, (html for _, html in pages))
    for (item, _), text in zip(pages, texts, strict=True):
        spaced = _spaced(text)
        found += sum(_spaced(piece) in spaced for piece in item["with"])
        wrong += sum(_spaced(piece) in spaced for piece in item["without"])
        wanted += len(item["with"])
    return Outcome((2 * found / (found + wrong + wanted), found / (found + wrong), found / wanted), milliseconds)


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _texts(name: str, pages: Iterable[bytes]) -> tuple[list[str], float]:
    """Return the texts of pages by an extractor, and CPU milliseconds a page."""
    extractor = load_extractor(name)
    texts, spent = [], 0.0
    for html in pages:
        began = time.process_time()
        texts.append(extract_text(html, extractor))
        spent += time.process_time() - began
    return texts, 1000 * spent / len(texts)


# -- the handbook ------------------------------------------------------------------------------------------------------


class _Main(NamedTuple):
    """The main text of a page."""

    words: Counter[str]
    beginnings: frozenset[str]
    """Beginnings of the elements in it."""


def _of_handbook(name: str, pages: Sequence[Path]) -> Outcome:
    bodies = [page.read_bytes() for page in pages]
    mains = [_main(html) for html in bodies]
    texts, milliseconds = _texts(name, bodies)
    kept, other = [], []
    for main, text in zip(mains, texts, strict=True):
        words = _words(text)
        common = (words & main.words).total()
        kept.append(common / main.words.total())
        other.append(1 - common / words.total() if words else 0.0)
    begun = list(_beginnings_looked_at(pages, mains, texts))
    cut = sum(not _begins_an_element(text, main) for main, text in begun)
    return Outcome((statistics.median(kept), min(kept), statistics.median(other), cut), milliseconds)


def _beginnings_looked_at(
    pages: Sequence[Path], mains: Sequence[_Main], texts: Sequence[str]
) -> Iterable[tuple[_Main, str]]:
    taken: Counter[Path] = Counter()
    for page, main, text in zip(pages, mains, texts, strict=True):
        taken[page.parent] += 1
        if taken[page.parent] <= _LOOKED_AT:
            yield main, text


def _main(html: bytes) -> _Main:
    tree = HtmlTree(html)
    text = "\n".join(node.text() for node in tree.css(_MAIN))
    elements = [_begin(node.text()) for main in tree.css(_MAIN) for node in (main, *main.css(_BLOCKS))]
    return _Main(_words(text), frozenset(filter(None, elements)))


def _begins_an_element(text: str, main: _Main) -> bool:
    """Return whether a text begins as some element does, or with all of one that is shorter than what is compared."""
    begin = _begin(text)
    return not begin or any(begin.startswith(one) for one in main.beginnings if len(one) > 2)


def _begin(text: str) -> str:
    """Return the first characters of a text that are letters or digits; bullets and signs differ between extractors."""
    return "".join(re.findall(r"\w", text[: 20 * _BEGIN]))[:_BEGIN]


def _words(text: str) -> Counter[str]:
    return Counter(re.findall(r"\w+", text))
