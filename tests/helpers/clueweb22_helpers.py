"""Small ClueWeb22 trees written byte by byte, without the project's own writer."""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from simulate.clueweb22.corpus import ClueWeb22Corpus

SUFFIX = {"txt": (".json.gz", ".offset"), "html": (".warc.gz", ".warc.offset")}


def member(data: bytes | str) -> bytes:
    """A gzip member."""
    return gzip.compress(data.encode() if isinstance(data, str) else data, mtime=0)


def paths(root: Path, kind: str, file_id: str) -> tuple[Path, Path]:
    """Data file and offset file; ``file_id`` of a language without underscore."""
    language, stream, subdir = file_id[:2], file_id[:4], file_id[:6]
    data, offset = SUFFIX.get(kind, SUFFIX["txt"])
    folder = root / kind / language / stream / subdir
    return folder / f"{file_id}{data}", folder / f"{file_id}{offset}"


def write_file(root: Path, kind: str, file_id: str, members: Sequence[bytes], before: bytes = b"") -> None:
    """Write a data file and its offsets; ``before`` stands in front of the first record."""
    data, offset = paths(root, kind, file_id)
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_bytes(before + b"".join(members))
    position, lines = len(before), []
    for one in members:
        lines.append(f"{position:010d}\n")
        position += len(one)
    offset.write_text("".join([*lines, f"{position:010d}\n"]))


def key_of(file_id: str, record: int) -> str:
    """The id of a record."""
    return f"clueweb22-{file_id}-{record:05d}"


def url_of(key: str) -> str:
    """The URL that pages of small trees have."""
    return f"https://{key[10:12]}.example/{key[10:]}"


def text_record(key: str, url: str | None = None, text: str = "Some text.", language: str = "en") -> bytes:
    """A ``txt`` record, with the line feed that its URLs end with."""
    url = url_of(key) if url is None else url
    record = {"URL": f"{url}\n", "URL-hash": "0" * 32, "Language": language, "ClueWeb22-ID": key, "Clean-Text": text}
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def link(target: str | None, anchor: str = "anchor", flag: str = "0") -> list[str | None]:
    """A link to a page of a small tree."""
    return [url_of(target) if target else "https://else.example/", "0" * 32, anchor, flag, "en", target]


def link_record(key: str, links: Sequence[object], field: str = "outlinks", url: str | None = None) -> bytes:
    """An ``outlink`` record, or with field ``anchors`` an ``inlink`` record."""
    url = url_of(key) if url is None else url
    return json.dumps({"url": url, "urlhash": "0" * 32, "language": "en", "ClueWeb22-ID": key, field: links}).encode()


def html_record(key: str, html: str = "<p>Grüße</p>", url: str | None = None, **head: str) -> bytes:
    """An ``html`` record; ``head`` overrides WARC fields (``Content_Length="7"``)."""
    body = html.encode()
    fields = {
        "WARC-Type": "response",
        "WARC-Record-ID": "<urn:uuid:00000000-0000-4000-8000-000000000000>",
        "WARC-Date": "2022-08-15T10:20:30.123456Z",
        "WARC-Target-URI": url_of(key) if url is None else url,
        "ClueWeb22-ID": key,
        "URL-Hash": "0" * 32,
        "Language": "en",
        "VDOM-Primary": "1 2 3",
        "Content-Type": "text/html",
        "Content-Length": str(len(body)),
        **{name.replace("_", "-"): value for name, value in head.items()},
    }
    return (
        "WARC/1.0\r\n{}\r\n".format("".join(f"{k}: {v}\r\n" for k, v in fields.items())).encode() + body + b"\r\n\r\n"
    )


def write_tree(root: Path, files: Sequence[str] = ("de0001-02", "en0000-00"), records: int = 3) -> Path:
    """A tree of all four kinds; each page links to the next and to one that is not held."""
    keys = [key_of(file_id, record) for file_id in files for record in range(records)]
    following = dict(zip(keys, [*keys[1:], keys[0]], strict=True))
    preceding = {target: source for source, target in following.items()}
    for file_id in files:
        own = [key for key in keys if f"-{file_id}-" in key]
        write_file(root, "txt", file_id, [member(text_record(key, text=f"Text of {key}.")) for key in own])
        write_file(root, "html", file_id, [member(html_record(key, f"<p>Page {key}</p>")) for key in own])
        outlinks = [[link(following[key]), link(None), link("clueweb22-en0079-99-00000")] for key in own]
        write_file(root, "outlink", file_id, [member(link_record(*one)) for one in zip(own, outlinks, strict=True)])
        inlinks = [[link(preceding[key])] for key in own]
        write_file(
            root, "inlink", file_id, [member(link_record(*one, "anchors")) for one in zip(own, inlinks, strict=True)]
        )
    return root


class SlowCorpus(ClueWeb22Corpus):
    """Takes its time over each file, so that a test can kill it half-way."""

    def urls_in(self, part: str) -> Iterator[tuple[int, str | None]]:
        time.sleep(0.1)
        return super().urls_in(part)
