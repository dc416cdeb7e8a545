"""Known URLs in a live crawl, by the servers' own log: nothing is sent for them but for seeds."""

from __future__ import annotations

import json
from pathlib import Path

from crawl_helpers import crawl_log
from live_helpers import crawl_live, text_page

from tests.testweb import FewPages, LocalWeb, read_log, running


def test_a_known_url_is_never_asked_for_unless_it_is_a_seed(tmp_path: Path) -> None:
    """``moved`` leads to a known URL of its own site, ``away`` to one of another; a seed's redirect is followed."""
    paths = ("/new", "/known", "/moved", "/away")
    hub = text_page(0, [f"http://one.test{path}" for path in paths]).body
    pages = {
        "hub.test": {"/": hub},
        "one.test": {path: text_page(number, []).body for number, path in enumerate(paths[:2], 1)},
        "seed.test": {"/to": text_page(5, []).body},
    }
    rules = {
        "one.test/moved": "to:one.test/known",
        "one.test/away": "to:seed.test/known",
        "seed.test/": "to:seed.test/to",
    }
    web = LocalWeb(tmp_path / "web", FewPages(pages), misbehaving=rules)
    with running(web):
        known = ["one.test/known", "seed.test/known", "seed.test/", "seed.test/to", "hub.test/"]
        listed = tmp_path / "known.txt"
        listed.write_text("".join(f"http://{place.replace('/', f':{web.port}/')}\n" for place in known))
        settings = {"CRAWL_BATCH_SIZE": 0, "DNS_HOSTS": web.hosts_file, "JOBDIR": tmp_path / "job"}
        seeds = [web.url("hub.test"), web.url("seed.test", "/")]
        result = crawl_live(seeds, tmp_path / "run", KNOWN_URLS=listed, **settings)
        assert result.returncode == 0, result.stderr
        asked = {f"{one.host}{one.path}" for one in read_log(web.log_file) if "." not in one.path}

    def short(url: str) -> str:
        return url.removeprefix("http://").replace(f":{web.port}", "")

    assert asked == {"hub.test/", "seed.test/", "seed.test/to", "one.test/new", "one.test/moved", "one.test/away"}
    lines = (tmp_path / "run/failures.jsonl").read_text().splitlines()
    dropped = {short(line["id"]): line["reason"] for line in map(json.loads, lines)}
    assert dropped == dict.fromkeys(("one.test/known", "one.test/moved", "one.test/away"), "known_url")
    assert {short(line["url"]) for line in crawl_log(tmp_path / "run")} == {"hub.test/", "seed.test/to", "one.test/new"}
