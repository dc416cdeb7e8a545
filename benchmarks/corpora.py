"""What benchmarks crawl: real pages and their scorer where ../shared is, generated webs of any size, the demo web.

Whatever is generated is made once and kept in the folder ``crawl4llm-benchmarks`` under XDG_CACHE_HOME (default: /tmp).
"""

from __future__ import annotations

import gzip
import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

from crawl4llm.base.jobs import Told, run_jobs
from crawl4llm.base.pages import Link, PageRecord
from crawl4llm.base.processes import cores
from crawl4llm.base.whole_files import whole_folder
from crawl4llm.warc.payload import entity, html_of
from crawl4llm.warc.reader import open_records
from crawl4llm.warc.records import CONTENT_TYPE
from simulate.clueweb22 import files as writer
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.clueweb22.files import DocumentHead
from simulate.clueweb22.records import OUTLINK, RECORDS_PER_FILE, TXT, format_id
from simulate.demo import train_model
from simulate.demo.text import LANGUAGES, Sentences
from simulate.opening import demo_web

PROJECT = Path(__file__).resolve().parents[1]
SHARED = PROJECT.parent / "shared"

_VERSION = 1  # to be raised with every change of what is generated
_SITE_PAGES, _IN_SITE = 200, 0.7
"""Pages of a site, and the share of links that stay in it."""
_POPULARITY = 3
"""Targets are drawn as the first pages by this power of a uniform number, so that few pages get many links."""
_LINKS, _CHARACTERS = 18, 1850
"""Means of a page, repeated links among them; log-normal, with a standard deviation of 1 in the logarithm."""
_PLAIN, _LEAST = 0.35, 0.04
"""Weight of plain sentences, and the least weight of those that explain and those that are poor."""
_SENTENCES, _PER_PARAGRAPH = 4000, 4


class Paths(NamedTuple):
    """A corpus in ClueWeb22 layout and the model that scores its pages."""

    corpus: Path
    model: Path
    what: str
    """What it is, for whoever reads the figures."""


def kept() -> Path:
    """Return the folder of what was generated."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or "/tmp") / "crawl4llm-benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def real_pages() -> Paths:
    """Return the real pages of ../shared, or the demo web where they are absent."""
    corpus = SHARED / "clueweb22-real"
    if corpus.exists():
        return Paths(corpus, model(), "21,599 real pages (../shared/clueweb22-real)")
    return demo()._replace(what="the demo web, 20,000 generated pages (../shared is not here)")


def demo() -> Paths:
    """Return the demo web with its own model."""
    return Paths(*demo_web(), "the demo web, 20,000 generated pages")


class HtmlPart(NamedTuple):
    """Some of the HTML pages of a WARC file or of a tree in ClueWeb22 layout: one of so many, from one of the first."""

    source: Path
    first: int
    step: int
    size: int = 1

    def pages(self) -> Iterator[PageRecord]:
        """Yield the pages, decoded to UTF-8."""
        if self.source.is_dir():
            corpus = ClueWeb22Corpus(self.source)
            yield from map(corpus.page, islice(corpus.keys(), self.first, None, self.step))
            return
        with tempfile.TemporaryDirectory() as points:
            records = open_records(self.source, Path(points) / "none")
            html = (
                frame
                for frame in records.frames()
                if frame.record and frame.http and frame.http.fields.get(CONTENT_TYPE).startswith(b"text/html")
            )
            for frame in islice(html, self.first, None, self.step):
                assert frame.record
                body = entity(records.read(frame.offset, frame.length), frame.record, frame.http)
                data = html_of(body, frame.http.fields if frame.http else frame.record.fields).data
                yield PageRecord(frame.record.url, frame.record.url, "2026-11-20T12:00:00Z", data)


def real_html() -> Paths:
    """Return where the real HTML pages of ../shared are, or the demo web where they are absent."""
    folder = SHARED / "corpora/real-web"
    if folder.exists():
        return Paths(folder, model(), "21,599 real HTML pages (../shared/corpora/real-web)")
    return real_pages()


def html_parts(number: int, step: int = 1) -> list[HtmlPart]:
    """Return parts, at least ``number``, that have one in ``step`` of the HTML pages."""
    folder = real_html().corpus
    files = sorted(folder.glob("*.warc.gz")) or [folder]
    parts = math.ceil(number / len(files))
    return [HtmlPart(file, step * part, step * parts) for file in files for part in range(parts)]


def debian_package(package: str) -> Path:
    """Return where the files of one of Debian's packages are: downloaded once, and unpacked without being installed.

    Raises OSError and CalledProcessError if it cannot be had.
    """
    to = kept() / "debian" / package
    if not to.exists():
        work = to.with_name(f"{package}.tmp")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        subprocess.run(["apt-get", "download", package], cwd=work, check=True, capture_output=True)
        (file,) = work.glob("*.deb")
        subprocess.run(["dpkg", "-x", file, work / "files"], check=True)
        (work / "files").rename(to)
        shutil.rmtree(work)
    return to


def generated(pages: int) -> Paths:
    """Return a generated web of some size; it is made first where it is not kept yet."""
    folder = kept() / f"generated-{_VERSION}-{pages}"
    if not folder.exists():
        print(f"making {pages:,} pages in {folder}, once", flush=True)
        with whole_folder(folder) as temporary:
            files = [
                _File(temporary, pages, number, min(RECORDS_PER_FILE, pages - number * RECORDS_PER_FILE))
                for number in range(math.ceil(pages / RECORDS_PER_FILE))
            ]
            counts = {_file_id(file.number): file.size for file in files}
            writer.write_root_files(temporary, "A generated web; not ClueWeb22 data.\n", {TXT: counts, OUTLINK: counts})
            for _ in run_jobs(_write, files, cores(), Told(" pages", label="generating")):
                pass
    return Paths(folder, model(), f"{pages:,} generated pages")


def model() -> Path:
    """Return the scorer of ../shared, or one trained as the demo web's is."""
    shared, own = SHARED / "scorers/prose.bin", kept() / "demo-model.bin"
    if shared.exists():
        return shared
    if not own.exists():
        unfinished = own.with_name(f"{own.name}.{os.getpid()}")
        train_model(unfinished, 0)
        unfinished.rename(own)
    return own


def seeds(corpus: Path, number: int) -> Path:
    """Return a list of seeds: that of the reference runs where there is one, else ids drawn by chance."""
    given = SHARED / f"reference-runs/seeds-{number}.txt"
    if corpus == SHARED / "clueweb22-real" and given.exists():
        return given
    file = kept() / f"{corpus.parent.name}-{corpus.name}-seeds-{number}.txt"
    counts = (corpus / "record_counts/record_counts/txt/en00_counts.csv").read_text().split()
    ids = [
        format_id(name, record) for name, size in (line.split(",") for line in counts) for record in range(int(size))
    ]
    file.write_text("".join(f"{key}\n" for key in Random(number).sample(ids, number)))
    return file


def with_ids_first(corpus: Path) -> Path:
    """Return a copy of a corpus whose links begin with the target's id, where the published implementation looks."""
    target = kept() / f"ids-first-{corpus.parent.name}-{corpus.name}"
    if target.exists():
        return target
    with whole_folder(target) as temporary:
        for offsets in (corpus / OUTLINK).rglob("*.offset"):
            writer.write_data_file(temporary, OUTLINK, offsets.stem, _ids_first(offsets))
        (temporary / TXT).symlink_to(corpus / TXT)
    return target


def _ids_first(offsets: Path) -> Iterator[bytes]:
    data = offsets.with_suffix(".json.gz").read_bytes()
    for begin, end in pairwise(map(int, offsets.read_text().split())):
        record = gzip.decompress(data[begin:end])
        if record.strip():
            fields = json.loads(record)
            fields["outlinks"] = [[link[5], *link[:5]] for link in fields["outlinks"]]
            record = json.dumps(fields).encode() + b"\n"
        yield record


class _File(NamedTuple):
    root: Path
    pages: int
    number: int
    size: int


def _file_id(number: int) -> str:
    return f"en{number // 10_000:02d}{number // 100 % 100:02d}-{number % 100:02d}"


def _write(file: _File) -> None:
    """Write both kinds of records of a file."""
    web, begin = _Web(file.pages), file.number * RECORDS_PER_FILE
    numbers = range(begin, begin + file.size)
    writer.write_data_file(file.root, TXT, _file_id(file.number), map(web.text_record, numbers))
    writer.write_data_file(file.root, OUTLINK, _file_id(file.number), map(web.link_record, numbers))


class _Web:
    """A web of sites of unlike quality, whose pages link within their site for the most part."""

    def __init__(self, pages: int) -> None:
        self._pages = pages
        self._sites = max(1, pages // _SITE_PAGES)
        self._styles = _sentences()
        self._words = sorted(
            {word for style in self._styles for text in style for word in text.split() if word.isalpha()}
        )

    def text_record(self, number: int) -> bytes:
        """Return the record of a page's text: sentences, of which the more explain the better its site is."""
        random = Random(f"text/{number}")
        level = Random(f"site/{number % self._sites}").gauss(-1.5, 1.2) + random.gauss(0, 0.7)
        quality = 1 / (1 + math.exp(-level))
        weights = (quality + _LEAST, _PLAIN, 1 - quality + _LEAST)
        sentences: list[str] = []
        length = random.lognormvariate(math.log(_CHARACTERS) - 0.5, 1)
        while length > 0:
            style = random.choices(self._styles, weights)[0]
            sentences.append(style[int(random.random() * len(style))])
            length -= len(sentences[-1])
        parts = range(0, len(sentences), _PER_PARAGRAPH)
        text = "\n".join(" ".join(sentences[part : part + _PER_PARAGRAPH]) for part in parts)
        return writer.txt_record(self._head(number), text)

    def link_record(self, number: int) -> bytes:
        """Return the record of a page's links."""
        random = Random(f"links/{number}")
        count = round(random.lognormvariate(math.log(_LINKS) - 0.5, 1))
        targets = dict.fromkeys(self._target(random, number) for _ in range(count))
        links = []
        for target in targets:
            head = self._head(target)
            anchor = " ".join(random.choices(self._words, k=3))
            links.append(Link(head.url, head.key, anchor, random.random() < 0.3))
        return writer.link_record(OUTLINK, self._head(number), links)

    def _target(self, random: Random, number: int) -> int:
        place = random.random() ** _POPULARITY
        if random.random() < _IN_SITE:
            site = number % self._sites
            return site + self._sites * int(place * ((self._pages - site - 1) // self._sites + 1))
        return int(place * self._pages)

    def _head(self, number: int) -> DocumentHead:
        file, record = divmod(number, RECORDS_PER_FILE)
        words = self._words
        path = f"{words[number % 97]}/{words[number % len(words)]}-{number}"
        url = f"https://www.site-{number % self._sites}.example/{path}.html"
        return DocumentHead(format_id(_file_id(file), record), url)


@cache
def _sentences() -> list[list[str]]:
    """Return sentences that explain, plain ones and poor ones, by the demo web's patterns."""
    random, language = Random("sentences"), LANGUAGES["en"]
    styles = []
    for patterns in (language.explaining, language.plain, language.poor):
        style = []
        for _ in range(_SENTENCES):
            subject = random.randrange(16)
            words = Sentences(random, subject)
            words |= {"topic": words["thing"], "theme": words["process"]}
            style.append(words.fill(random.choice(patterns)))
        styles.append(style)
    return styles
