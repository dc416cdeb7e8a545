"""What ``explain`` cites of sites that all give the same answers within one second."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from addon_site import Answer
from crawl_helpers import scrapy
from live_helpers import crawl_live, text_page
from owner_sites import serve_owners

from crawl4llm.warc import cdxj

NOT_FOUND = Answer(b"<html><head><title>404 Not Found</title></head><body><center>nginx</center></body></html>", 404)
SITES = 4


def told_of(output: Path, url: str) -> dict[str, dict[str, str]]:
    shown = scrapy("explain", url, "--run", str(output), "--json", "-s", "SCORER=length")
    assert shown.returncode == 0, shown.stderr
    told: dict[str, dict[str, str]] = json.loads(shown.stdout)
    return told


def test_each_site_is_cited_for_itself(tmp_path: Path) -> None:
    """robots.txt that is missing allows the pages, and heads without a body refuse others; of all sites alike."""
    output = tmp_path / "out"
    with serve_owners(SITES) as sites:
        for number, site in enumerate(sites):
            site.pages = {"/": text_page(number, []), "/no": Answer(b"<p>no", 403), "/robots.txt": NOT_FOUND}
        seeds = [f"{site.url}{path}" for site in sites for path in ("/", "/no")]
        settings = {"CRAWL_BATCH_SIZE": 0, "CRAWL_MAX_PAGES": 500, "DELAY_FACTOR": 0, "DOWNLOAD_DELAY": 0.01}
        assert crawl_live(seeds, output, **settings).returncode == 0
    entries = cdxj.read(output / "warc/index.cdxj", redirects=True)
    alike = Counter((entry.digest, entry.timestamp) for entry in entries if not entry.id)
    assert sum(count for count in alike.values() if count > 1) > SITES, "many are alike by digest and second"
    for site in sites:
        allowed, refused = told_of(output, f"{site.url}/"), told_of(output, f"{site.url}/no")
        assert allowed["said_by"]["url"] == f"{site.url}/robots.txt"
        assert refused["said_by"]["url"] == f"{site.url}/no"
        assert allowed["record"]["id"] != refused["record"]["id"]
        assert refused["record"]["id"].startswith("<urn:uuid:")
