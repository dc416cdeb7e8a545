"""Files of known links, written as ``scrapy corpus known --links`` writes them."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from graph_corpus import GraphCorpus
from warcio.warcwriter import WARCWriter

from crawl4llm.base.pages import PageRecord
from crawl4llm.parts.known_links.file import CLUEWEB22, links_record, scheme_of
from crawl4llm.tools._known_files import LinkedPage, LinkSpread, write_links


def write_known(
    to: Path, pages: Iterable[PageRecord], scores: Mapping[str, float] | None = None, *, by_url: bool = False
) -> Path:
    """Write a file of pages with their links; keys are ids unless ``by_url``."""
    with tempfile.TemporaryDirectory() as folder:
        spread = LinkSpread(Path(folder) / "links")
        linked = [(page.key, links_record(page, follows=page.follows, by_url=by_url)) for page in pages]
        spread.add([LinkedPage(key, 0, record) for key, record in linked if record is not None])
        spread.add_scores((scores or {}).items())
        write_links(spread, scheme_of(None if by_url else CLUEWEB22), Path(folder), to)
    return to


def half_known(to: Path, corpus: GraphCorpus, seed: int, *, scored: bool = True, share: float = 0.5) -> set[str]:
    """Write a file of a random half of a graph's sound pages; return their keys."""
    draw = random.Random(seed)
    keys = {key for key in corpus.keys() if draw.random() < share and key not in corpus.corrupt}
    pages = [PageRecord(key, f"http://{key[-1]}.example/{key}", outlinks=corpus.outlinks(key)) for key in sorted(keys)]
    scores = {key: round(draw.random(), 3) for key in sorted(keys) if draw.random() < 0.5} if scored else {}
    write_known(to, pages, scores)
    return keys


def wat_file(path: Path, pages: Iterable[tuple[str, Mapping[str, Any]]]) -> Path:
    """Write a WAT file as Common Crawl does: a warcinfo record, and a metadata record for each record of a WARC file.
    ``pages``: URLs, and what is said of each under HTML-Metadata; ``status``, ``type`` and ``headers`` are taken
    out."""
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=True, warc_version="WARC/1.0")
        writer.write_record(writer.create_warcinfo_record(path.name, {"software": "ia-web-commons"}))
        for url, told in pages:
            html = {key: value for key, value in told.items() if key not in {"status", "type", "headers"}}
            response = {
                "Response-Message": {"Version": "HTTP/1.1", "Status": told.get("status", "200"), "Reason": "OK"},
                "Headers": {"Content-Type": "text/html", **told.get("headers", {})},
                "HTML-Metadata": html,
                "Entity-Length": "1000",
            }
            envelope = {
                "Format": "WARC",
                "WARC-Header-Length": "600",
                "Block-Digest": "sha1:AAAA",
                "WARC-Header-Metadata": {"WARC-Type": told.get("type", "response"), "WARC-Target-URI": url},
                "Payload-Metadata": {
                    "Actual-Content-Type": "application/http; msgtype=response",
                    "HTTP-Response-Metadata": response,
                },
            }
            container = {"Filename": "CC-MAIN-0.warc.gz", "Compressed": True, "Offset": "1"}
            block = json.dumps({"Container": container, "Envelope": envelope}).encode()
            record = writer.create_warc_record(
                url,
                "metadata",
                payload=BytesIO(block),
                warc_content_type="application/json",
                warc_headers_dict={"WARC-Refers-To": "<urn:uuid:0>", "WARC-Date": "2026-05-01T00:00:00Z"},
            )
            writer.write_record(record)
    return path


def anchor(url: str, text: str = "", **others: str) -> dict[str, str]:
    """A link as a WAT file has it."""
    return {"path": "A@/href", "url": url, **({"text": text} if text else {}), **others}
