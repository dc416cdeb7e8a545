"""A small dataset as a crawl leaves it, and the command that works on it."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import pytest
from archive_helpers import INFO
from scrapy.cmdline import execute
from scrapy.settings import Settings

from crawl4llm.base.crawl_log import CrawlLine
from crawl4llm.base.pages import Capture, PageRecord
from crawl4llm.crawl.page_writer import CrawlLog
from crawl4llm.warc import SIGNALS, ArchiveFormat, ArchiveWriter, Values

HOSTS = ("one.example", "www.two.example", "two.example", "three.example")
PAGES = 40
TWIN_OF = {11: 6, 23: 10, 27: 3, 31: 10}
"""Pages that have the body of another one; 6 and 10 are of two.example, all others are not."""
REDIRECTED = {12: "two.example", 14: "one.example"}
"""Pages that a redirect led to, and the host that it came from."""


def host_of_page(number: int) -> str:
    return HOSTS[number % len(HOSTS)]


def url_of_page(number: int) -> str:
    return f"https://{host_of_page(number)}/page-{number}"


def body(number: int) -> bytes:
    number = TWIN_OF.get(number, number)
    words = " ".join(f"{(number + 1) * i * 7919:x}" for i in range(120))
    return f"<!doctype html><title>{number}</title><p>{words}".encode()


def capture(url: str, content: bytes, status: int = 200, *headers: tuple[bytes, bytes]) -> Capture:
    return Capture(
        url=url,
        date="2026-11-20T12:00:00.123456Z",
        method="GET",
        request_headers=[(b"Host", b"x"), (b"User-Agent", b"tests")],
        request_body=b"",
        status=status,
        reason="",
        headers=[(b"Content-Type", b"text/html; charset=utf-8"), (b"X-Url", url.encode()), *headers],
        exact_headers=True,
        body=content,
        protocol="http/1.1",
        ip_address="127.0.0.1",
    )


def page(number: int) -> PageRecord:
    url = url_of_page(number)
    captures = [capture(url, body(number))]
    if number in REDIRECTED:
        source = f"https://{REDIRECTED[number]}/to-{number}"
        captures.insert(0, capture(source, b"", 301, (b"Location", url.encode())))
    language = "en" if number % 2 else None
    return PageRecord(f"doc-{number:03d}", url, "2026-11-20T12:00:00Z", captures=captures, language=language)


def log_line(number: int) -> CrawlLine:
    return {
        "order": number,
        "iteration": 0,
        "id": f"doc-{number:03d}",
        "url": url_of_page(number),
        "status": 200,
        "priority": 0.5,
        "influence": number / PAGES,
        "depth": 0,
        "parent": None,
        "visited": number + 1,
        "fetched": number + 1,
    }


def write_run(folder: Path, *, close: bool = True, compression: str = "gzip", pages: int = PAGES) -> None:
    """The output directory of a crawl, in several files, with requests, redirects, revisits and texts."""
    form = ArchiveFormat(compression=compression, text=True, revisits=100)
    folder.mkdir(parents=True)
    archive = ArchiveWriter(folder / "warc", replace(INFO, prefix="c"), 14_200, form=form)
    log = CrawlLog(folder)
    for number in range(pages):
        one = page(number)
        signals = "head X-Robots-Tag noai" if number in {0, *TWIN_OF} else None
        fields: Values = {"id": one.key, "influence": number / PAGES, "order": number, SIGNALS: signals}
        archive.write(one, {**fields, "language": one.language}, None if number % 5 == 4 else f"Text of page {number}.")
        log.write([log_line(number)], [])
    (folder / "settings.json").write_text(json.dumps({"crawl_id": str(INFO.crawl_id)}))
    log.close()
    if close:
        archive.close()
    else:
        archive.flush()


def archive(*args: object) -> tuple[int, str, str]:
    """Exit status, output and errors of ``scrapy archive``, in this process: that saves Scrapy's start-up."""
    settings = Settings({"COMMANDS_MODULE": "crawl4llm.commands"})
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        execute(["scrapy", "archive", *map(str, args), "--jobs", "1"], settings)
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def done(*args: object) -> str:
    """What the command prints when it goes well."""
    status, out, err = archive(*args)
    assert (status, err) == (0, ""), out + err
    return out


def refused(*args: object) -> str:
    """The one line by which the command says what is wrong."""
    status, out, err = archive(*args)
    assert status == 1, out
    assert err.startswith("crawl4llm: error: "), err
    assert err.count("\n") == 1, err
    return err


def problems(folder: Path) -> list[str]:
    """The problems that a check names, which must be some."""
    status, out, err = archive("check", folder)
    assert status == 1, out + err
    assert "Traceback" not in err
    return out.splitlines()


def write_finished(run: Path) -> Path:
    """A run whose archive is finished."""
    write_run(run)
    done("finish", run)
    return run


def tree(folder: Path) -> dict[str, bytes]:
    """All files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
