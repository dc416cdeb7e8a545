"""A live crawl goes by `link`; one that was begun by `parent_first`, as older versions did, goes on so."""

from __future__ import annotations

import json
from pathlib import Path

from addon_site import page, serve
from crawl_helpers import error_of
from live_helpers import crawl_live

DEFAULT = {"URL_POLICY": None, "CRAWL_BATCH_SIZE": 0}


def policy_of(output: Path) -> str:
    settings = json.loads((output / "settings.json").read_text())
    assert settings["policy"] == settings["settings"]["URL_POLICY"]
    return str(settings["policy"])


def test_link_is_the_default_and_older_crawls_go_on(tmp_path: Path) -> None:
    pages = {f"/{number}": page(0.5, [f"/{number + 1}", f"/{number + 2}"], seed=number) for number in range(9)}
    with serve(pages) as site:
        seeds = [f"{site.url}/0"]
        new, old = tmp_path / "new", tmp_path / "old"
        begun = crawl_live(seeds, new, **DEFAULT, CRAWL_MAX_PAGES=2, JOBDIR=tmp_path / "new-job")
        assert begun.returncode == 0, begun.stderr
        assert policy_of(new) == "link"
        chosen = {**DEFAULT, "URL_POLICY": "parent_first"}
        begun = crawl_live(seeds, old, **chosen, CRAWL_MAX_PAGES=2, JOBDIR=tmp_path / "old-job")
        assert begun.returncode == 0, begun.stderr
        assert policy_of(old) == "parent_first"
        more = crawl_live(seeds, old, **DEFAULT, CRAWL_MAX_PAGES=4, JOBDIR=tmp_path / "old-job")
        assert more.returncode == 0, more.stderr
        assert "was begun with URL_POLICY parent_first, and goes on so" in more.stderr
        assert policy_of(old) == "parent_first"
        assert len((old / "crawl.jsonl").read_text().splitlines()) == 4
        other = crawl_live(
            seeds, old, CRAWL_MAX_PAGES=5, CRAWL_BATCH_SIZE=0, JOBDIR=tmp_path / "old-job", URL_POLICY="link"
        )
        assert "URL_POLICY was 'parent_first', is 'link'" in error_of(other)
