"""``scrapy corpus``: the actions on the corpus that CORPUS names, and on those that it builds.

``show`` prints a document, ``sample`` the keys of random ones, or seeds from ranks of hosts. ``index`` makes the index
of a corpus, ``demo`` the demo web, ``build`` a ClueWeb22 tree, ``ranks`` a file of harmonic centralities for the policy
``harmonic``.

Seeds are chosen from ranks as ClueWeb12 was seeded: those of highest PageRank, without those that a list of spam has.
ClueWeb12 took pages, the first ten million, and removed the tenth most like spam.

A file of ranks has a line a host, divided by tabs: ``#harmonicc_pos #harmonicc_val #pr_pos #pr_val #host_rev``, and for
domains ``#n_hosts``; names are reversed, and a host's leading ``www.`` is left out (commoncrawl.org, host- and
domain-level web graphs). It is in the order of harmonic centrality, and read no further than to the last host that is
wanted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.domain_lists import DomainList
from crawl4llm.base.domains import Domain
from crawl4llm.base.errors import InputError, MissingRecord
from crawl4llm.base.input_files import named_lines
from crawl4llm.base.pages import Corpus, Link
from crawl4llm.base.processes import cores
from crawl4llm.base.tables import Fact, Line, Part, Rows, facts
from crawl4llm.base.terminal import harmless, positive_integer
from crawl4llm.base.whole_files import check_new_file, write_new
from crawl4llm.crawl import find_document, not_held
from crawl4llm.tools._action import Action, add_work_options
from simulate import (
    FULL_ID_POSITION,
    HOSTS,
    PAGES,
    build_corpus,
    build_demo,
    data_dir,
    ensure_demo,
    index_corpus,
    open_corpus,
    rank_pages,
)

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _show(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    corpus = open_corpus(settings)
    key = find_document(corpus, opts.arguments[0])
    if key not in corpus:
        raise not_held(corpus, key)
    page = corpus.page(key)
    text = None
    with suppress(MissingRecord):
        text = corpus.text(key)
    yield from facts({"id": key, "url": page.url, "date": page.date, "language": page.language})
    html = None if page.html is None else len(page.html)
    yield Fact("html", html, "-" if html is None else f"{html:,} bytes")
    yield Fact("characters", None if text is None else len(text), "")
    yield Fact("text", text, f"{'-' if text is None else f'{len(text):,} characters'}")
    yield Fact("inlinks", len(corpus.inlinks(key)))
    if text:
        yield Line(f"\n{text}\n")
    yield from _outlinks(corpus, page.outlinks)


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
    keys: Iterable[str]
    if opts.ranks is not None:
        keys = ranked_seeds(opts.ranks, opts.n, opts.without)
    elif opts.without is not None:
        raise InputError("--without goes with --ranks FILE")
    else:
        corpus = open_corpus(settings)
        corpus.check()
        keys = corpus.sample(opts.n, opts.seed)
    yield Rows("documents", ("id",), ((key,) for key in keys), line=str)


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

_COLUMNS: Final = ["#harmonicc_pos", "#harmonicc_val", "#pr_pos", "#pr_val", "#host_rev"]
_POSITION, _NAME = _COLUMNS.index("#pr_pos"), _COLUMNS.index("#host_rev")


def ranked_seeds(path: Path, number: int, without: Path | None) -> Iterator[str]:
    """Yield the lines of a seeds file: home pages, and comments on the names left out. Raises InputError."""
    listed = None if without is None else DomainList(without, "--without")
    if listed is not None and listed.fault is not None:
        yield f"# {listed.fault}"
    left_out = odd = 0
    for name in islice(_hosts(path, number), number):
        try:
            host = Domain(name).name
        except InputError:
            odd += 1
        else:
            if listed is not None and listed.line_of(host) is not None:
                left_out += 1
            else:
                yield f"https://{host}/"
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


# -- building ---------------------------------------------------------------------------------------------------------


def _index(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    found = list(index_corpus(settings, opts.jobs, opts.tasks))
    yield from (Fact(name, value, width=max(len(one) for one, _ in found) + 2) for name, value in found)


def _add_demo_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; ``--seed`` and ``--jobs`` other actions have added."""
    parser.add_argument("--to", type=Path, metavar="DIR", help="folder to build in (default: in Scrapy's data dir)")
    parser.add_argument(
        "--pages", type=positive_integer, default=PAGES, metavar="N", help=f"number of pages (default: {PAGES})"
    )
    parser.add_argument(
        "--hosts", type=positive_integer, default=HOSTS, metavar="N", help=f"number of hosts (default: {HOSTS})"
    )


def _demo(_settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Build the demo web; yield its paths."""
    size = {"pages": opts.pages, "hosts": opts.hosts, "seed": opts.seed, "jobs": opts.jobs}
    paths = ensure_demo(data_dir(), **size) if opts.to is None else build_demo(opts.to, **size)
    yield Fact("corpus", paths.corpus, width=8)
    yield Fact("model", paths.model, width=8)
    yield f"Next: {command('crawl', 'influence', simulation=True, CORPUS=paths.corpus, SCORER_MODEL=paths.model)}"


def _add_build_options(parser: argparse._ArgumentGroup) -> None:
    """Add the options; ``--to`` and ``--jobs`` other actions have added."""
    parser.add_argument(
        "--from", dest="source", metavar="CORPUS", help="source of the build, a value of CORPUS (default: that setting)"
    )
    parser.add_argument(
        "--manifest", type=Path, metavar="FILE", help="manifest.tsv of an earlier build, to keep its ids"
    )
    parser.add_argument(
        "--link-id-position",
        type=int,
        choices=(0, FULL_ID_POSITION),
        default=FULL_ID_POSITION,
        help="5: links as in ClueWeb22, with their target's id last (default); 0: only the id, as the published code "
        "reads them by default",
    )


def _build(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    """Build a tree; yield its counts and path."""
    if opts.to is None:
        raise InputError("give the folder to build in: --to DIR")
    if opts.source is not None:
        settings.set("CORPUS", opts.source, priority="cmdline")
    if settings.getpriority("CORPUS_CANONICAL_LINKS") is None:
        settings.set("CORPUS_CANONICAL_LINKS", True, priority="default")  # a tree is built once: no link is to be lost
    counts = build_corpus(
        settings, opts.to, opts.manifest, opts.jobs or cores(), slim_links=opts.link_id_position != FULL_ID_POSITION
    )
    yield from facts({**counts, "tree": opts.to})


def _rank(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if opts.out is None:
        raise InputError("give the file to write: --out FILE")
    check_new_file(opts.out)
    ranks = rank_pages(settings)
    best_first = sorted(ranks.items(), key=lambda ranked: (-ranked[1], ranked[0]))
    write_new(opts.out, "".join(f"{key}\t{value!r}\n" for key, value in best_first), "the ranks")
    yield Fact("pages", len(ranks), width=7)
    yield Fact("ranks", opts.out, width=7)
    given = given_settings(settings) | {"URL_POLICY": "harmonic", "HARMONIC_RANKS": opts.out}
    yield f"Next: {command('crawl', 'influence', simulation=True, **given)}"


def _add_rank_options(parser: argparse._ArgumentGroup) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write, which must not exist")


INDEX = Action(
    "Build the index: of a ClueWeb22 tree, for seeds given as URLs; of WARC files, for everything. After an "
    "interruption the next run continues.",
    _index,
    add_options=add_work_options,
)
DEMO = Action(
    "Build the demo web and its model in a folder (also takes --seed and --jobs).",
    _demo,
    add_options=_add_demo_options,
)
BUILD = Action(
    "Write a corpus in the layout of ClueWeb22 to --to DIR (also takes --jobs); after an interruption the same "
    "command continues.",
    _build,
    add_options=_add_build_options,
)
RANKS = Action(
    "Write the harmonic centrality of every page to --out FILE (.gz: compressed), best first, for HARMONIC_RANKS. It "
    "is exact, over the links between documents of the corpus; the time grows with the number of pages times the "
    "number of links.",
    _rank,
    add_options=_add_rank_options,
)
