"""Whether ReplayWeb.page replays our WACZ files: its own code, wabac.js among it, in headless Chromium.

    python -m benchmarks.replay [--run DIR] [--pages 100] [--out FOLDER]

Without a run the test suite's small site is crawled live: redirects, pages that repeat others, gzip, chunks, Latin-1.
``scrapy archive finish --wacz`` packs the run; npm brings the package ``replaywebpage`` to a temporary folder, which is
served, with the WACZ, on this machine. ReplayWeb.page opens the WACZ; then each page is asked for as it was archived
and compared with what our reader finds, and some are shown as a visitor sees them. Redirects are followed.

Says why and ends with 0 if npm, Chromium, its driver or Selenium is missing; ends with 1 if a page differs.
"""

from __future__ import annotations

import argparse
import base64
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.results import PROJECT, Figure, Result, Table, add_output, publish
from crawl4llm.warc import cdxj
from crawl4llm.warc.page_records import Entry
from crawl4llm.warc.payload import html_of
from crawl4llm.warc.reader import read_record, read_stored

PACKAGE = "replaywebpage@2"
NEEDED = ("npm", "chromedriver")
SHOWN = 5
"""Pages that are looked at in ReplayWeb.page itself."""
LOST, OTHER, NOT_SHOWN = WRONG = ("redirects lost", "pages that differ", "pages not shown")
SAME, FOLLOWED, SEEN = RIGHT = ("pages identical", "redirects followed", "pages shown")
_PATIENCE = 60
_ASKED = """
const [url, done] = arguments;
fetch(url).then(async (answer) => {
    const data = new Uint8Array(await answer.arrayBuffer());
    const text = Array.from(data, (byte) => String.fromCharCode(byte)).join("");
    done([answer.status, answer.redirected, btoa(text)]);
}).catch((error) => done([0, false, btoa(String(error))]));
"""
_SEEN = """
function* roots(root) {
    for (const element of root.querySelectorAll("*")) {
        if (element.shadowRoot) yield* roots(element.shadowRoot);
        if (element.tagName === "IFRAME" && element.contentDocument) {
            yield element.contentDocument;
            yield* roots(element.contentDocument);
        }
    }
}
return Array.from(roots(document), (found) => found.body ? found.body.textContent : "").join(" ");
"""
"""All that is in frames: the replayed page is in one, within shadow trees."""


class Files(SimpleHTTPRequestHandler):
    """Files with byte ranges (RFC 9110, 14), which wabac.js asks a WACZ for."""

    def do_GET(self) -> None:
        """Answer with a part of a file where one is asked for, counted from its begin or its end."""
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        path = Path(self.translate_path(self.path))
        if wanted is None or not path.is_file():
            super().do_GET()
            return
        size = path.stat().st_size
        first, last = (int(part) if part else None for part in wanted.groups())
        start = max(0, size - (last or 0)) if first is None else first
        end = size if first is None or last is None else min(size, last + 1)
        self.send_response(206)
        self.send_header("Content-Length", str(end - start))
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        with path.open("rb") as file:
            file.seek(start)
            while start < end and (data := file.read(min(1 << 20, end - start))):
                self.wfile.write(data)
                start += len(data)

    def log_message(self, *_: object) -> None:
        """Nothing: what is asked for is no result."""


class Server(ThreadingHTTPServer):
    """A server to which a browser may break connections off."""

    def handle_error(self, *_: object) -> None:
        """Nothing: the browser asks again for what it needs."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The URL at which a folder is served."""
    with Server(("127.0.0.1", 0), partial(Files, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def install(folder: Path) -> str:
    """Unpack ReplayWeb.page in a folder; its version."""
    command = ["npm", "pack", "--silent", "--pack-destination", str(folder), PACKAGE]
    packed = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if packed.returncode:
        sys.exit(f"npm cannot fetch {PACKAGE}: {packed.stderr.strip()}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        archive.extractall(folder, filter="data")
    return str(json.loads((folder / "package/package.json").read_text())["version"])


def crawl(output: Path) -> None:
    """Crawl the test suite's small site live; it is gone when this returns."""
    from addon_site import serve
    from live_helpers import crawl_live, small_web

    with redirect_stderr(StringIO()), serve(small_web()) as site:  # it tells of connections that the crawl breaks off
        done = crawl_live([f"{site.url}/page-0", f"{site.url}/dir"], output, CRAWL_MAX_PAGES=100, WARC_REVISITS=1000)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def replay(driver: Any, base: str, run: Path, most: int) -> Counter[str]:
    """Compare pages of a run with their replay; counts by what came of it."""
    driver.set_script_timeout(_PATIENCE)
    source = f"{base}/?source={quote(f'{base}/crawl.wacz', safe='')}"
    driver.get(source)
    found: Counter[str] = Counter()
    collection = opened(driver)
    everything = list(cdxj.read(run / "warc/index.cdxj", redirects=True))
    answers = [entry for entry in everything if entry.status or entry.mime != "text/plain"]
    entries = [entry for entry in answers if entry.id or str(entry.status).startswith("3")]
    pages = [entry for entry in entries if entry.id]
    print(f"opened: {len(pages)} pages, {len(entries) - len(pages)} redirects", end="; not replayed: ")
    print(f"{len(everything) - len(answers)} texts without a page, {len(answers) - len(entries)} policy files")
    for entry in entries[:: max(1, len(entries) // most)]:
        form = "id_" if entry.id else "mp_"  # as it was archived, or with links that lead to the archive
        url = f"{base}/w/{collection}/{entry.timestamp}{form}/{entry.url}"
        status, redirected, data = driver.execute_async_script(_ASKED, url)
        if not entry.id:
            what = FOLLOWED if redirected and status == 200 else LOST
        else:
            what = SAME if status == 200 and is_same(run, entry, base64.b64decode(data)) else OTHER
        found[what] += 1
        if what in {LOST, OTHER}:
            print(f"{what}: {status} {entry.url}")
    told = ((entry, words_of(read_record(run / "warc", entry))) for entry in pages[:: max(1, len(pages) // most)])
    for entry, words in islice(filter(itemgetter(1), told), SHOWN):
        driver.get("about:blank")
        driver.get(f"{source}#view=replay&url={quote(entry.url, safe='')}&ts={entry.timestamp}")
        shown = waited(lambda words=words: words in " ".join(driver.execute_script(_SEEN).split()))
        found[SEEN if shown else NOT_SHOWN] += 1
        if not shown:
            print(f"{NOT_SHOWN}: {entry.url}")
    return found


def opened(driver: Any) -> str:
    """The name under which ReplayWeb.page has opened the WACZ."""
    names: list[str] = []

    def is_there() -> bool:
        _, _, data = driver.execute_async_script(_ASKED, "./w/api/coll-index")
        try:
            names.extend(each["id"] for each in json.loads(base64.b64decode(data))["colls"])
        except (KeyError, ValueError):  # the service worker does not answer yet
            return False
        return bool(names)

    if not waited(is_there):
        sys.exit("ReplayWeb.page does not open the WACZ")
    return names[0]


def waited(is_so: Any) -> bool:
    """Whether something becomes so."""
    end = time.monotonic() + _PATIENCE
    while not is_so():
        if time.monotonic() > end:
            return False
        time.sleep(0.2)
    return True


def is_same(run: Path, entry: Entry, replayed: bytes) -> bool:
    """Whether a page is replayed as our reader finds it, in whatever charset."""
    stored = read_stored(run / "warc", entry.filename, entry.offset, entry.length)
    fields = stored.http.fields if stored.http else stored.record.fields
    return read_record(run / "warc", entry) in {replayed, html_of(replayed, fields).data}


def words_of(html: bytes) -> str:
    """The first words of a page's longest paragraph, as far as there is no markup in it."""
    paragraphs = re.findall(r"<p(?: [^>]*)?>([^<&]+)", html.decode("utf-8", "replace"))
    return " ".join(max(paragraphs, key=len, default="").split()[:-1][:20])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, metavar="DIR", help="OUTPUT_DIR of a crawl that has ended")
    parser.add_argument("--pages", type=int, default=100, metavar="N", help="about so many are compared")
    add_output(parser)
    opts = parser.parse_args()
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing:
        print(f"skipped: needs {' and '.join(missing)}")
        return 0
    sys.path.insert(0, str(PROJECT / "tests/helpers"))
    try:
        import pytest
        from browser import chromium
    except ImportError as error:
        print(f"skipped: {error}; pip install -e '.[test]'")
        return 0
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as name:
        folder = Path(name)
        version = install(folder)
        run = opts.run or folder / "run"
        if opts.run is None:
            crawl(run)
        wacz = folder / "package/crawl.wacz"
        subprocess.run([sys.executable, "-m", "scrapy", "archive", "finish", str(run), "--wacz", str(wacz)], check=True)
        with zipfile.ZipFile(wacz) as archive:
            what = f"a WACZ of {len(archive.namelist())} files, {wacz.stat().st_size:,} bytes; ReplayWeb.page {version}"
        try:
            with served(folder / "package") as base, chromium(folder / "profile") as driver:
                found = replay(driver, base, run, opts.pages)
        except pytest.skip.Exception as why:
            print(f"skipped: {why}")
            return 0
    result = Result("replay", [what], [Table("Replayed", ["", "pages"], [[kind, found[kind]] for kind in RIGHT])])
    result.figures += [Figure(kind, found[kind], 0) for kind in WRONG]
    publish(result, opts)
    return 0 if result.met else 1


if __name__ == "__main__":
    sys.exit(main())
