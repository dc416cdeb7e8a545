"""What the tests of ``scrapy corpus build`` share. Importable by the processes of a build, which open corpora anew."""

from __future__ import annotations

import gzip
import json
import os
import signal
import time
import zlib
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import trafilatura  # noqa: F401 - before processes are forked
from warc_helpers import page, redirect, response, url_of, warcinfo, write

from crawl4llm.base.pages import Corpus, PageRecord
from crawl4llm.base.pools import Pool
from simulate.build import build_tree
from simulate.build.plan import BuildOptions
from simulate.clueweb22.corpus import ClueWeb22Corpus
from simulate.warcs.corpus import WarcCorpus

OPTIONS = BuildOptions("trafilatura", False, time_limit=30.0)
SUFFIXES = {"html": (".warc.gz", ".warc.offset")}


def build(
    source: Corpus, to: Path, *, jobs: int = 1, manifest: Path | None = None, fork: bool = True, **changed: Any
) -> Mapping[str, int]:
    """A build with the usual options but for those given.

    Its processes are forked, where those of the command begin anew: each would take a second to start.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("simulate.build.Pool", partial(Pool, fork=fork))
        return build_tree(source, to, OPTIONS._replace(**changed), jobs=jobs, manifest=manifest)


def warc_corpus(folder: Path, numbers: list[int], name: str = "warc") -> WarcCorpus:
    """Pages that each link to the two that follow, through a redirect to the first, and to one that is not held."""
    following = dict(pairwise([*numbers, *numbers[:2]]))
    records = [warcinfo(), redirect("https://site.example/old", url_of(numbers[0]))]
    for number in numbers:
        links = [url_of(following[number]), "/old#top", "https://else.example/", url_of(following[following[number]])]
        records.append(page(number, links))
    return WarcCorpus(write(folder / name / "pages.warc.gz", *records), folder / f"{name}-index")


def text_page(number: int, text: str) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + text.encode()
    return response(url_of(number), block)


def records_of(root: Path, kind: str, file_id: str = "en0000-00") -> list[bytes]:
    """The records of a data file, as the format page says to read them; without the project's reader."""
    data, offsets = SUFFIXES.get(kind, (".json.gz", ".offset"))
    place = root / kind / file_id[:-7] / file_id[:-5] / file_id[:-3] / file_id
    content = place.with_name(place.name + data).read_bytes()
    lines = place.with_name(place.name + offsets).read_bytes()
    assert len(lines) % 11 == 0
    places = [int(lines[at : at + 10]) for at in range(0, len(lines), 11)]
    assert places[0] == 0
    assert places[-1] == len(content)
    return [gzip.decompress(content[start:end]) for start, end in pairwise(places)]


def json_records(root: Path, kind: str, file_id: str = "en0000-00") -> list[dict[str, Any] | None]:
    """Records of JSON; None for an empty line or member."""
    return [json.loads(record) if record.strip() else None for record in records_of(root, kind, file_id)]


def ids(root: Path) -> dict[str, str]:
    """Ids by key, from the manifest."""
    return dict(line.split("\t") for line in (root / "manifest.tsv").read_text().splitlines())


def by_url(root: Path, file_ids: list[str]) -> dict[str, tuple[str, set[str]]]:
    """Text, and URLs of the pages linked to, of each page of a tree."""
    texts = [record for file_id in file_ids for record in json_records(root, "txt", file_id) if record]
    links = [record for file_id in file_ids for record in json_records(root, "outlink", file_id) if record]
    urls = {record["ClueWeb22-ID"]: record["URL"].strip() for record in texts}
    targets = {record["ClueWeb22-ID"]: {urls[link[5]] for link in record["outlinks"] if link[5]} for record in links}
    return {
        urls[record["ClueWeb22-ID"]]: (record["Clean-Text"], targets.get(record["ClueWeb22-ID"], set()))
        for record in texts
    }


def first_members(path: Path, count: int) -> bytes:
    """The first gzip members of a file."""
    with path.open("rb") as file:
        data = file.read(count * 20_000)
    at = 0
    for _ in range(count):
        member = zlib.decompressobj(16 + zlib.MAX_WBITS)
        member.decompress(memoryview(data)[at:])
        assert member.eof
        at = len(data) - len(member.unused_data)
    return data[:at]


class Hostile(ClueWeb22Corpus):
    """Some of its pages hang or end the process that reads their text, or reads them at all; one raises what nobody
    foresaw."""

    def text(self, key: str) -> str:
        self._harm(key, {1: self._hang, 2: self._end})
        return super().text(key)

    def page(self, key: str) -> PageRecord:
        self._harm(key, {3: self._hang, 4: self._fail})
        return super().page(key)

    def _harm(self, key: str, harms: dict[int, Any]) -> None:
        if key.startswith("clueweb22-en0000-00") and int(key[-5:]) in harms:
            harms[int(key[-5:])]()

    def _hang(self) -> None:
        time.sleep(600)

    def _fail(self) -> None:
        raise KeyError("href")

    def _end(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


class Deadly(ClueWeb22Corpus):
    """Kills whoever writes its HTML."""

    def html(self, key: str) -> bytes:
        os.kill(os.getpid(), signal.SIGKILL)
        return super().html(key)


class Slow(ClueWeb22Corpus):
    """Takes its time over each page, so that a test can kill a build half-way."""

    def page(self, key: str) -> PageRecord:
        time.sleep(0.001)
        return super().page(key)


class Empty(ClueWeb22Corpus):
    """Holds nothing."""

    def keys(self) -> Iterator[str]:
        return iter(())
