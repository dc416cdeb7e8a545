"""Pages that opt out of training, each in a way of its own, and pages that do not: on a server, or in a WARC file."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from addon_site import Handler, Server
from warc_helpers import http, response, write

HTML = "text/html; charset=utf-8"
_TAG = "X-Robots-Tag"

# The fields of a response that opt a page out, for crawlers of any name.
IN_HEADS: Sequence[Sequence[tuple[str, str]]] = (
    [(_TAG, "noai")],
    [(_TAG, "NOAI")],
    [("x-robots-tag", "noai, noimageai")],
    [(_TAG.upper(), "noimageai,noai")],
    [(_TAG, "noindex")],
    [(_TAG, "NoIndex, NoFollow")],
    [(_TAG, "none")],
    [(_TAG, "noarchive")],
    [(_TAG, "max-snippet: 20, noai")],
    [(_TAG, "unavailable_after: Friday, 25-Jun-10 15:00:00 PST, noai")],
    [(_TAG, "robots: noai")],
    [(_TAG, "*: noindex")],
    [(_TAG, "otherbot: nofollow, *: noai")],
    [(_TAG, "nofollow"), (_TAG, "noai")],
    [("TDM-Reservation", "1")],
    [("tdm-reservation", "1")],
    [("TDM-RESERVATION", " 1 ")],
    [("TDM-Reservation", "0, 1")],
    [("TDM-Reservation", "1"), ("TDM-Policy", "https://example.com/policy")],
    [("Content-Usage", "train-ai=n")],
    [("content-usage", "search=y, train-ai=n")],
    [("Content-Usage", "train-ai=n;exceptions=1")],
    [("Content-Usage", "search=y"), ("Content-Usage", "train-ai=n")],
    [("Content-Usage", "train-ai=y, train-ai=n")],
    [("Content-Signal", "ai-train=no")],
    [("CONTENT-SIGNAL", "AI-TRAIN=NO")],
    [("Content-Signal", "search=yes,ai-train=no")],
    [("Content-Signal", "search=yes; ai-train=no")],
    [("Content-Signal", "ai-input=no")],
    [("Content-Signal", "use=immediate")],
    [("Content-Signal", "use=reference")],
    [("Content-Signal", "ai-train=yes, ai-train=no")],
    [("Content-Usage", "train-ai=y"), ("Content-Signal", "ai-train=no")],
)
# The same in the head of a document.
IN_HTML = (
    '<meta name="robots" content="noai">',
    '<META NAME="ROBOTS" CONTENT="NOAI">',
    "<meta name=robots content=noai>",
    "<meta name='robots' content='noai'>",
    '<meta content="noai" name="robots">',
    '<meta name="robots" content="noai, noimageai">',
    '<meta name="robots" content="index,follow,noai">',
    '<meta name="robots" content="noindex">',
    '<meta name="robots" content="none"/>',
    '<meta name="robots" content="noarchive" />',
    '<meta name="robots" content="NoIndex, NoFollow">',
    '<meta name="robots" content="all"><meta name="robots" content="noai">',
    '<meta\n  name="robots"\n  content="noai"\n>',
    '<!-- a > b </head> --><meta name="robots" content="noai">',
    '<script>"<!-- </head>"</script><style>p > a {}</style><meta name="robots" content="noai">',
    f'<style>{"p { color: red } " * 5000}</style><meta name="robots" content="noai">',
    '<meta name="robots" data-x="a > b" content="noai">',
    '<meta name="r&#111;bots" content="no&#x61;i">',
    '<noscript><img src="/pixel"></noscript><meta name="robots" content="noai">',
    '</head><body><p>robots</p><meta name="robots" content="noai">',
    '<meta name="tdm-reservation" content="1">',
    '<meta name="TDM-Reservation" content=" 1 ">',
    '<meta name="tdm-reservation" content="1"><meta name="tdm-policy" content="https://example.com/policy">',
    '<meta http-equiv="X-Robots-Tag" content="noai">',
    '<meta http-equiv="content-usage" content="train-ai=n">',
    '<meta http-equiv="Content-Signal" content="search=yes, ai-train=no">',
    '<meta http-equiv="TDM-Reservation" content="1">',
)
# What forbids no training.
NOTHING_SAID: Sequence[tuple[Sequence[tuple[str, str]], str]] = (
    ([], ""),
    ([(_TAG, "noimageai, nofollow")], ""),
    ([(_TAG, "otherbot: noai")], ""),
    ([("Content-Usage", "search=n, train-ai=y")], ""),
    ([("Content-Signal", "search=no, ai-train=yes")], ""),
    ([("TDM-Reservation", "0")], ""),
    ([], '<!-- <meta name="robots" content="noai"> -->'),
    ([], '<title>robots: noai</title><meta name="description" content="noai, noindex and other robots">'),
    ([], '<meta name="otherbot" content="noai">'),
    ([], '<template><meta name="robots" content="noai"></template>'),
    ([], '<script>\'<meta name="robots" content="noai">\'</script>'),
)


class Page(NamedTuple):
    """A page as a server sends it."""

    path: str
    fields: Sequence[tuple[str, str]]
    body: bytes

    @property
    def head(self) -> Sequence[tuple[str, str]]:
        """All fields of its head."""
        given = {name.lower() for name, _ in self.fields}
        return [*self.fields, *([] if "content-type" in given else [("Content-Type", HTML)])]


def html(name: str, tags: str) -> str:
    """A page with a text that no other has, enough of it for an extractor."""
    words = " ".join(f"{name} has word {number} that stands in no other text." for number in range(12))
    return (
        f"<!doctype html><html><head>{tags}<title>Page {name}</title></head><body><main><p>{words}</p></main>"
        '<a href="/">home</a></body></html>'
    )


def opted_out() -> list[Page]:
    """Sixty-four pages, each with another signal."""
    pages = [Page(f"/head-{n}", fields, html(f"head{n}", "").encode()) for n, fields in enumerate(IN_HEADS)]
    pages += [Page(f"/meta-{n}", [], html(f"meta{n}", tags).encode()) for n, tags in enumerate(IN_HTML)]
    noai = '<meta name="robots" content="noai">'
    coded = gzip.compress(html("coded", noai).encode(), mtime=0)
    latin = html("latin", f'<meta charset="windows-1252"><title>Größe</title>{noai}').encode("cp1252")
    return [
        *pages,
        Page("/utf-16", [("Content-Type", "text/html")], html("wide", noai).encode("utf-16")),
        Page("/latin", [("Content-Type", "text/html")], latin),
        Page("/coded", [("Content-Encoding", "gzip")], coded),
        Page("/both", [(_TAG, "all")], html("both", noai).encode()),
    ]


def kept() -> list[Page]:
    """Pages that may be trained on; the first is the one that links to all."""
    pages = [
        Page(f"/kept-{n}", fields, html(f"kept{n}", tags).encode()) for n, (fields, tags) in enumerate(NOTHING_SAID)
    ]
    links = "".join(f'<a href="{page.path}">one</a>' for page in (*opted_out(), *pages))
    home = html("home", "").replace("</main>", f"</main>{links}")
    return [Page("/", [], home.encode()), *pages]


def web() -> list[Page]:
    return [*kept(), *opted_out()]


def warc_of(pages: Sequence[Page], site: str, path: Path) -> Path:
    """The pages as somebody's crawler has archived them."""
    return write(path, *(response(f"{site}{page.path}", http(page.body, fields=_lines(page))) for page in pages))


def _lines(page: Page) -> list[str]:
    return [f"{name}: {value}" for name, value in page.head]


@contextmanager
def serve_pages(pages: Sequence[Page]) -> Iterator[str]:
    """The pages on a port of this machine; its URL. There is neither a robots.txt nor a tdmrep.json."""
    by_path = {page.path: page for page in pages}

    class Answers(Handler):
        def do_GET(self) -> None:
            page = by_path.get(self.path)
            body = page.body if page else b"not here"
            self.send_response(200 if page else 404)
            for name, value in page.head if page else ():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    server = Server(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
