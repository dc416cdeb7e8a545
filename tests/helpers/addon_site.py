"""A small web on a real socket, with good and bad pages, and a fastText model that tells them apart."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

GOOD = "theorem proof lemma integral algebra physics energy history chapter essay argument evidence theory"
BAD = "casino bonus click cheap discount jackpot subscribe winner prize hot deal crypto lottery"


class Answer(NamedTuple):
    """What the server says to one path."""

    body: bytes
    status: int = 200
    content_type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = {}
    chunked: bool = False
    """Sent in chunks, without a length."""
    seconds: float = 0.0
    """How long the server takes before it says anything."""


class Asked(NamedTuple):
    """A request as the server got it."""

    method: str
    path: str
    body: bytes


class Site:
    """Serves pages by path, and remembers what it was asked for, in order."""

    def __init__(self, port: int, answers: Mapping[str, Answer | Sequence[Answer]]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Asked] = []
        self.headers: list[Mapping[str, str]] = []
        """Of each request."""
        self._answers = answers

    def answer(self, asked: Asked) -> Answer:
        """What there is at a path; where that is several answers, they are given in turn."""
        before = sum(earlier.path == asked.path for earlier in self.asked)
        self.asked.append(asked)
        found = self._answers.get(asked.path, Answer(b"<p>not here", 404))
        return found if isinstance(found, Answer) else found[min(before, len(found) - 1)]

    def paths(self) -> list[str]:
        """Paths in the order in which they were asked for, those of robots.txt and well-known files apart."""
        return [asked.path for asked in self.asked if not asked.path.startswith(("/robots.txt", "/.well-known/"))]


def prose(goodness: float, words: int = 120, seed: int = 0) -> str:
    """Sentences of which a share are good."""
    draw = random.Random(f"{goodness} {seed}")
    sentences = []
    for _ in range(words // 8):
        vocabulary = GOOD if draw.random() < goodness else BAD
        sentences.append(" ".join(draw.choices(vocabulary.split(), k=8)).capitalize() + ".")
    return " ".join(sentences)


def page(goodness: float, links: Sequence[str] = (), *, seed: int = 0) -> Answer:
    """An HTML page of some quality with links in its navigation."""
    navigation = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    body = "".join(f"<p>{prose(goodness, seed=seed * 10 + number)}</p>" for number in range(3))
    html = (
        f"<html><head><title>A page</title></head><body><nav><ul>{navigation}</ul></nav>"
        f"<article><h1>A page</h1>{body}</article></body></html>"
    )
    return Answer(html.encode())


def in_chunks(body: bytes) -> bytes:
    """A body as RFC 9112, 7.1 has it in transfer."""
    parts = [body[start : start + 1000] for start in range(0, len(body), 1000)]
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (*parts, b""))


class Server(ThreadingHTTPServer):
    """A server to which a crawler opens many connections at once."""

    request_queue_size = 128
    """The default is five: the system drops what comes beyond them, and the client repeats it after up to a minute."""


class Handler(BaseHTTPRequestHandler):
    """Keeps connections open, and sends a body at once after its head."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args: object) -> None:
        """The test output is no place for an access log."""


@contextmanager
def serve(
    answers: Mapping[str, Answer | Sequence[Answer]], address: str = "127.0.0.1", port: int = 0
) -> Iterator[Site]:
    """A site on a port of this machine, 0: a free one."""

    class Answers(Handler):
        def answer(self) -> None:
            with suppress(ConnectionError):  # a crawler that was stopped
                self.say()

        def say(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            site.headers.append(dict(self.headers))
            answer = site.answer(Asked(self.command, self.path, body))
            time.sleep(answer.seconds)
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            if answer.chunked:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(len(answer.body)))
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(in_chunks(answer.body) if answer.chunked else answer.body)

        def do_GET(self) -> None:
            self.answer()

        def do_POST(self) -> None:
            self.answer()

        def do_HEAD(self) -> None:
            self.answer()

    server = Server((address, port), Answers)
    site = Site(server.server_port, answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def train_model(path: Path) -> None:
    """A classifier of good and bad pages."""
    import fasttext

    lines = []
    for seed in range(200):
        goodness = seed % 2
        label = "__label__hq" if goodness else "__label__lq"
        lines.append(f"{label} {prose(goodness, 40, seed)}\n")
    text = path.with_suffix(".txt")
    text.write_text("".join(lines))
    model = fasttext.train_supervised(str(text), dim=4, epoch=5, lr=0.5, thread=1, verbose=0)
    model.save_model(str(path))


class LengthScorer:
    """The longer the better."""

    digest = "0"

    def score(self, texts: Sequence[str]) -> list[float]:
        return [float(len(text)) for text in texts]
