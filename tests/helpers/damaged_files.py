"""What this project, warcio and FastWARC read of files that are damaged or unusual.

    PYTHONPATH=tests/helpers python tests/helpers/damaged_files.py

Each file has four pages, and the damage hits the second. Counted are the pages whose HTML is read as it was written.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

from fastwarc.warc import ArchiveIterator, WarcRecordType
from warc_helpers import arc, arc_head, clueweb09, html_of, http, page, record, response, url_of, write
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from crawl4llm.warc.payload import entity
from crawl4llm.warc.reader import open_records, scan
from crawl4llm.warc.records import Frame, UnreadableFile

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

PAGES = [page(number) for number in range(4)]
HTML = {html_of(number) for number in range(4)}


def instead(second: bytes) -> list[bytes]:
    """The pages with another record in place of the second."""
    return [PAGES[0], second, *PAGES[2:]]


def of_length(length: int | None) -> list[bytes]:
    fields = ["Content-Type: application/http; msgtype=response"]
    return instead(record("response", url_of(1), http(html_of(1)), fields, length=length))


def edit(path: Path, records: list[bytes], change: Callable[[bytes], bytes]) -> Path:
    """Write records with one change to the bytes of the second."""
    first, second = (len(write(path, *records[:count]).read_bytes()) for count in (1, 2))
    data = write(path, *records).read_bytes()
    path.write_bytes(data[:first] + change(data[first:second]) + data[second:])
    return path


def flipped(data: bytes) -> bytes:
    return data[:-20] + bytes([data[-20] ^ 16]) + data[-19:]


def cut(path: Path) -> Path:
    path.write_bytes(write(path, *PAGES).read_bytes()[:-60])
    return path


def joined(path: Path) -> Path:
    """A file that was cut short in its second record, and another one behind it."""
    half = write(path, *PAGES[:2]).read_bytes()[:-60]
    path.write_bytes(half + write(path, *PAGES[2:]).read_bytes())
    return path


def with_dictionary(path: Path) -> Path:
    trained = zstd.train_dict([page(number) for number in range(300)], 4096)
    frames = [zstd.compress(one, zstd_dict=trained) for one in PAGES]
    content = trained.dict_content
    path.write_bytes(b"\x5d\x2a\x4d\x18" + len(content).to_bytes(4, "little") + content + b"".join(frames))
    return path


def whole(path: Path, records: Iterable[bytes]) -> Path:
    path.write_bytes(gzip.compress(b"".join(records), mtime=0))
    return path


FILES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "nothing wrong": (".warc.gz", lambda path: write(path, *PAGES)),
    "cut short in the last record, gzip": (".warc.gz", cut),
    "cut short in the last record, plain": (".warc", cut),
    "cut short in the second, and another file joined to it, gzip": (".warc.gz", joined),
    "the same, plain": (".warc", joined),
    "a bit flipped, gzip": (".warc.gz", lambda path: edit(path, PAGES, flipped)),
    "a bit flipped, Zstandard": (".warc.zst", lambda path: edit(path, PAGES, flipped)),
    "garbage between members": (".warc.gz", lambda path: edit(path, PAGES, lambda data: data + b"garbage" * 9)),
    "Content-Length too small, gzip": (".warc.gz", lambda path: write(path, *of_length(10))),
    "Content-Length too small, plain": (".warc", lambda path: write(path, *of_length(10))),
    "Content-Length too large, gzip": (".warc.gz", lambda path: write(path, *of_length(100_000))),
    "Content-Length too large, plain": (".warc", lambda path: write(path, *of_length(100_000))),
    "no Content-Length, gzip": (".warc.gz", lambda path: write(path, *of_length(None))),
    "no Content-Length, plain": (".warc", lambda path: write(path, *of_length(None))),
    "a head without an end": (".warc.gz", lambda path: write(path, *instead(b"WARC/1.0\r\nX: " + b"y" * 3_000_000))),
    "an HTTP head without an end": (
        ".warc.gz",
        lambda path: write(path, *instead(response(url_of(1), b"HTTP/1.1 200 OK\r\nX: y"))),
    ),
    "compressed as a whole, gzip": (".warc.gz", lambda path: whole(path, PAGES)),
    "ClueWeb09: bare line feeds, wrong lengths, as a whole": (
        ".warc.gz",
        lambda path: whole(path, [clueweb09(None, b"x\n"), *(clueweb09(n, html_of(n)) for n in range(4))]),
    ),
    "ARC": (".arc.gz", lambda path: write(path, arc_head(), *(arc(url_of(n), http(html_of(n))) for n in range(4)))),
    "Zstandard": (".warc.zst", lambda path: write(path, *PAGES)),
    "Zstandard with a dictionary": (".warc.zst", with_dictionary),
}
"""File name extension, and what makes the file."""


def ours(path: Path) -> Iterator[bytes]:
    points = path.with_name("points")

    def places(frames: Iterable[Frame]) -> list[Frame]:
        return [frame for frame in frames if frame.record and frame.record.kind == "response"]

    for frame in scan(path, points, places):
        assert frame.record
        data = open_records(path, points).read(frame.offset, frame.length)
        yield entity(data, frame.record, frame.http)


def by_warcio(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for one in WarcioIterator(file):
            if one.rec_type == "response":
                yield one.content_stream().read()


def by_fastwarc(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        for one in ArchiveIterator(file, record_types=WarcRecordType.response):
            yield one.reader.read()


def result(read: Callable[[Path], Iterator[bytes]], path: Path) -> str:
    """What a reader makes of a file: how many pages, and the error that ended the reading."""
    found: set[bytes] = set()
    try:
        for body in read(path):
            found |= {body} & HTML
    except UnreadableFile:
        return "4, with indexed_gzip"  # which is not installed; tests/simulate/test_warcs.py has the test with it
    except Exception as error:  # noqa: BLE001 - whatever a library raises is what it does
        return f"{len(found)}, then {type(error).__name__}"
    return f"{len(found)}, with indexed_gzip" if path.with_name("points").exists() else str(len(found))


def table() -> str:
    """The table as benchmarks/notes-damaged-files.md has it."""
    lines = [
        f"| file of four pages | warcio {version('warcio')} | FastWARC {version('FastWARC')} | crawl4llm |",
        "|-|-|-|-|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for number, (what, (suffix, make)) in enumerate(FILES.items()):
            here = Path(folder) / str(number)
            here.mkdir()
            path = make(here / f"x{suffix}")
            results = [result(read, path) for read in (by_warcio, by_fastwarc, ours)]
            lines.append(f"| {what} | {' | '.join(results)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
