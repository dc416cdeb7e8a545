"""``scrapy corpus``: ``show`` prints a document, ``sample`` the keys of random ones, or seeds from ranks of hosts.

Such seeds are chosen as ClueWeb12 was seeded: those of highest PageRank, without those that a list of spam has.
ClueWeb12 took pages, the first ten million, and removed the tenth most like spam.

A file has a line a host, divided by tabs: ``#harmonicc_pos #harmonicc_val #pr_pos #pr_val #host_rev``, and for domains
``#n_hosts``; names are reversed, and a host's leading ``www.`` is left out (commoncrawl.org, host- and domain-level web
graphs). It is in the order of harmonic centrality, and read no further than to the last host that is wanted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.input_files import named_lines
from crawl4llm.base.pages import Corpus, Link
from crawl4llm.base.tables import Fact, Line, Part, Rows
from crawl4llm.base.terminal import harmless, positive_integer
from crawl4llm.crawl import find_document, not_held
from crawl4llm.tools._action import Action
from simulate import open_corpus

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _show(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    corpus = open_corpus(settings)
    key = find_document(corpus, opts.arguments[0])
    if key not in corpus:
        raise not_held(corpus, key)
    page = corpus.page(key)
    text = _text(corpus, key)
    yield Fact("id", key)
    yield Fact("url", page.url)
    yield Fact("date", page.date)
    yield Fact("language", page.language)
    html = None if page.html is None else len(page.html)
    yield Fact("html", html, "-" if html is None else f"{html:,} bytes")
    yield Fact("characters", None if text is None else len(text), "")
    yield Fact("text", text, f"{'-' if text is None else f'{len(text):,} characters'}")
    yield Fact("inlinks", len(corpus.inlinks(key)))
    if text:
        yield Line(f"\n{text}\n")
    yield from _outlinks(corpus, page.outlinks)


def _text(corpus: Corpus, key: str) -> str | None:
    try:
        return corpus.text(key)
    except MissingRecord:
        return None


def _outlinks(corpus: Corpus, links: list[Link] | None) -> Iterator[Part]:
    if links is None:
        yield Fact("outlinks", None)
        return
    held = [link.key in corpus for link in links]
    yield Line(f"{'outlinks':<11}{len(links):,}, {sum(held):,} of them held by the corpus")
    rows = ((mark, link.key, link.url, link.anchor) for link, mark in zip(links, held, strict=True))
    yield Rows("outlinks", ("held", "id", "url", "anchor"), rows, line=_link_line)


def _link_line(held: bool, key: str | None, url: str, anchor: str) -> str:
    return f"{'+' if held else '-'} {key or 'no id'}  {url}  {' '.join(anchor.split())}".rstrip()


def _sample(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if opts.ranks is not None:
        keys: Iterable[str] = ranked_seeds(opts.ranks, opts.n, opts.without)
        yield _keys(keys)
        return
    if opts.without is not None:
        raise InputError("--without goes with --ranks FILE")
    corpus = open_corpus(settings)
    corpus.check()
    yield _keys(corpus.sample(opts.n, opts.seed))


def _keys(keys: Iterable[str]) -> Rows:
    return Rows("documents", ("id",), ((key,) for key in keys), line=str)


def _add_sample_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("-n", "--n", type=positive_integer, default=100, metavar="N", help="how many (default: 100)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    parser.add_argument(
        "--ranks",
        type=Path,
        metavar="FILE",
        help="instead of a corpus: the home pages of the N hosts of highest PageRank in Common Crawl's ranks",
    )
    parser.add_argument("--without", type=Path, metavar="LIST", help="leave out the domains in this file, such as spam")


# -- seeds from ranks -------------------------------------------------------------------------------------------------

_COLUMNS: Final = "#harmonicc_pos #harmonicc_val #pr_pos #pr_val #host_rev".split()  # noqa: SIM905 - as a head has them
_POSITION, _NAME = _COLUMNS.index("#pr_pos"), _COLUMNS.index("#host_rev")


def ranked_seeds(path: Path, number: int, without: Path | None) -> Iterator[str]:
    """Yield the lines of a seeds file: home pages, and comments on the names left out. Raises InputError."""
    listed = None if without is None else DomainList(without, "--without")
    if listed is not None and listed.fault is not None:
        yield f"# {listed.fault}"
    left_out = odd = 0
    for found, name in enumerate(_hosts(path, number), 1):
        try:
            host = Domain(name).name
        except InputError:
            odd += 1
        else:
            if listed is not None and listed.line_of(host) is not None:
                left_out += 1
            else:
                yield f"https://{host}/"
        if found == number:
            break
    more = f", {odd:,} are not domains" if odd else ""
    yield f"# of {number:,} hosts of highest PageRank in {path.name}, {left_out:,} are left out by the list{more}"


def _hosts(path: Path, number: int) -> Iterator[str]:
    """Yield the names whose PageRank is among the first, in the order of the file. Raises InputError."""
    is_empty = True
    for at, line in enumerate(named_lines("--ranks", path), 1):
        fields = line.rstrip("\r\n").split("\t")
        if at == 1 and line.startswith("#"):
            if [name.strip() for name in fields[: len(_COLUMNS)]] != _COLUMNS:
                raise _fault(path, at, f"has the columns {harmless(line.strip()[:80])!r}")
            continue
        is_empty = False
        if not len(_COLUMNS) <= len(fields) <= len(_COLUMNS) + 1:
            raise _fault(path, at, f"has {len(fields)} columns")
        position = fields[_POSITION].strip()
        if not (position.isdecimal() and len(position) < 16):
            raise _fault(path, at, f"has no position by PageRank in column {_POSITION + 1}")
        if int(position) <= number:
            yield ".".join(reversed(fields[_NAME].strip().split(".")))
    if is_empty:
        raise InputError(f"--ranks {path} has no lines")


def _fault(path: Path, at: int, what: str) -> InputError:
    wanted = f"it takes Common Crawl's ranks of hosts or domains: {' '.join(_COLUMNS)}"
    return InputError(f"--ranks {path}, line {at}, {what}; {wanted}")


SHOW = Action(
    "Print a document: URL, date, language, text, and its outlinks, with a + if the corpus holds the target.",
    _show,
    "ID-or-URL",
)
SAMPLE = Action(
    "Print the keys of random documents, one per line; the same corpus, number and seed give the same keys. With "
    "--ranks, print seeds for a live crawl.",
    _sample,
    add_options=_add_sample_options,
)
