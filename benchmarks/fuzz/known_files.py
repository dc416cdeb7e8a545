"""Targets: files of known URLs and of known links, which anybody may have made."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from benchmarks.fuzz.mutators import of_json_lines
from benchmarks.fuzz.target import Reader, Target


def _with_digest(data: bytes) -> bytes:
    """Return a changed file whose head has the digest that it should have, so that it is read on."""
    from crawl4llm.base.sorted_file import MAGIC

    if not data.startswith(MAGIC):
        return data
    said, _, rest = data[len(MAGIC) :].partition(b"\n")
    return MAGIC + said + b"\n" + hashlib.sha256(said).hexdigest().encode() + rest[64:]


def _urls(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.parts.known_urls.work import KnownUrls

    path = folder / "urls.known"

    def read(data: bytes) -> None:
        path.write_bytes(_with_digest(data))
        known = KnownUrls([str(path)])
        known.why("http://a.example/"), list(known.lines), len(known)

    return Reader(read, (InputError,))


def _url_seeds() -> list[bytes]:
    import io

    import numpy as np

    from crawl4llm.base.sorted_file import known
    from crawl4llm.base.sorted_writer import SortedWriter
    from crawl4llm.parts.known_urls.work import URL_SCHEME, URLS, url_fingerprint

    file = io.BytesIO()
    writer = SortedWriter(file)
    prints = np.array(sorted({url_fingerprint(f"http://a.example/{number}") for number in range(9)}), dtype=np.uint64)
    writer.table(URLS, "I", len(prints), [[prints]])
    writer.finish(known(URLS), URL_SCHEME, len(prints))
    return [file.getvalue(), b"# c\nhttp://a.example/\nhttps://b.example/x\n"]


def _links(folder: Path) -> Reader:
    from crawl4llm.base.errors import InputError
    from crawl4llm.parts.known_links.file import MOST_LINKS, KnownLinks

    path = folder / "links.known"

    def read(data: bytes) -> None:
        path.write_bytes(_with_digest(data))
        known = KnownLinks(path)
        for number in range(9):
            if (place := known.find(key := f"http://a.example/{number}")) is not None:
                known.score(place)
                assert len(known.page(place, key).outlinks or ()) <= MOST_LINKS

    return Reader(read, (InputError,))


def _link_seeds() -> list[bytes]:
    import tempfile

    from crawl4llm.base.pages import Link, PageRecord
    from crawl4llm.parts.known_links.file import links_record, scheme_of
    from crawl4llm.tools._known_files import LinkedPage, LinkSpread, write_links

    found: list[LinkedPage] = []
    for number in range(9):
        key = f"http://a.example/{number}"
        page = PageRecord(key, key, outlinks=[Link("http://b.example/", None, "b", False, "ugc")])
        found.append(LinkedPage(key, 0, links_record(page, follows=True, by_url=True) or b""))
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        spread = LinkSpread(folder / "links")
        spread.add(found)
        spread.add_scores([("http://a.example/1", 0.5)])
        write_links(spread, scheme_of(None), folder, folder / "links.known")
        return [(folder / "links.known").read_bytes()]


TARGETS: Final = (
    Target("known", _urls, _url_seeds, of_json_lines, megabytes=64),
    Target("known-links", _links, _link_seeds, of_json_lines, megabytes=96),
)
