"""A live crawl goes by `link` where it can; one that was begun otherwise goes on as it was."""

from __future__ import annotations

import json
from pathlib import Path

from addon_site import page, serve
from crawl_helpers import PROJECT, error_of
from live_helpers import crawl_live

HINT = "link needs Vowpal Wabbit: pip install vowpalwabbit"
DEFAULT = {"URL_POLICY": None, "CRAWL_BATCH_SIZE": 0}
STAND_IN = f"URL_POLICY is parent_first, as {HINT}"


def without_learner(folder: Path) -> dict[str, str]:
    """The environment of a process in which the learner cannot be imported."""
    (folder / "vowpalwabbit.py").write_text("raise ImportError('no such library')")
    return {"PYTHONPATH": f"{folder}:{PROJECT}"}


def policy_of(output: Path) -> str:
    settings = json.loads((output / "settings.json").read_text())
    assert settings["policy"] == settings["settings"]["URL_POLICY"]
    return str(settings["policy"])


def test_link_is_the_default_and_older_crawls_go_on(tmp_path: Path) -> None:
    missing = without_learner(tmp_path)
    pages = {f"/{number}": page(0.5, [f"/{number + 1}", f"/{number + 2}"], seed=number) for number in range(9)}
    with serve(pages) as site:
        seeds = [f"{site.url}/0"]
        new, old = tmp_path / "new", tmp_path / "old"
        begun = crawl_live(seeds, new, **DEFAULT, CRAWL_MAX_PAGES=2, JOBDIR=tmp_path / "new-job")
        assert begun.returncode == 0, begun.stderr
        assert policy_of(new) == "link"
        begun = crawl_live(seeds, old, missing, **DEFAULT, CRAWL_MAX_PAGES=2, JOBDIR=tmp_path / "old-job")
        assert begun.returncode == 0, begun.stderr
        assert STAND_IN in begun.stderr
        assert policy_of(old) == "parent_first"
        more = crawl_live(seeds, old, **DEFAULT, CRAWL_MAX_PAGES=4, JOBDIR=tmp_path / "old-job")
        assert more.returncode == 0, more.stderr
        assert "was begun with URL_POLICY parent_first, and goes on so" in more.stderr
        assert policy_of(old) == "parent_first"
        assert len((old / "crawl.jsonl").read_text().splitlines()) == 4
        refused = crawl_live(seeds, new, missing, **DEFAULT, CRAWL_MAX_PAGES=4, JOBDIR=tmp_path / "new-job")
        assert error_of(refused) == f"URL_POLICY {HINT}"
        asked_for = crawl_live(seeds, tmp_path / "run", missing, URL_POLICY="link")
        assert error_of(asked_for) == f"URL_POLICY {HINT}"
        assert not (tmp_path / "run").exists()
        other = crawl_live(
            seeds, old, CRAWL_MAX_PAGES=5, CRAWL_BATCH_SIZE=0, JOBDIR=tmp_path / "old-job", URL_POLICY="link"
        )
        assert "URL_POLICY was 'parent_first', is 'link'" in error_of(other)
