"""A crawl that is refused when it starts leaves no folder behind that would block the next one."""

from __future__ import annotations

from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of

POLICY = """\
from crawl4llm.base.errors import InputError
from crawl4llm.policies.breadth_first import Policy as BreadthFirst

class Policy(BreadthFirst):
    name = "mine"

    async def score(self, candidates):
        raise InputError("mine.txt cannot be read: there is none; write it")
"""


@pytest.fixture
def own(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/refusing.py").write_text(POLICY)
    return {"PYTHONPATH": str(tmp_path / "own")}


@pytest.mark.parametrize("jobdir", [False, True], ids=["memory", "jobdir"])
def test_a_crawl_that_is_refused_when_it_begins(
    jobdir: bool, own: dict[str, str], demo_web: Web, tmp_path: Path
) -> None:
    """It has run already, as Scrapy sees it; with a JOBDIR, the same command goes on."""
    output = tmp_path / "new/output"
    settings: dict[str, object] = {"CRAWL_MAX_PAGES": 5}
    if jobdir:
        settings["JOBDIR"] = tmp_path / "job"
    refused = crawl(demo_web, output, env=own, URL_POLICY="refusing.Policy", **settings)
    assert error_of(refused) == "mine.txt cannot be read: there is none; write it"
    if jobdir:
        (tmp_path / "own/refusing.py").write_text(
            POLICY.replace("raise InputError", "return await super().score(candidates) #")
        )
        again = crawl(demo_web, output, env=own, URL_POLICY="refusing.Policy", **settings)
    else:
        assert not output.exists()
        again = crawl(demo_web, output, **settings)
    assert again.returncode == 0, again.stderr
    assert len(crawl_log(output)) == 5


def test_files_of_the_user_stay(own: dict[str, str], demo_web: Web, tmp_path: Path) -> None:
    output = tmp_path / "output"
    output.mkdir()
    (output / "seeds.txt").write_text("mine")
    refused = error_of(crawl(demo_web, output, CRAWL_MAX_PAGES=5))
    assert refused == f"OUTPUT_DIR {output} holds seeds.txt, which a crawl would write; give another directory"
    assert [(path.name, path.read_text()) for path in output.iterdir()] == [("seeds.txt", "mine")]
    (output / "seeds.txt").rename(output / "my-seeds.txt")
    error_of(crawl(demo_web, output, env=own, URL_POLICY="refusing.Policy", CRAWL_MAX_PAGES=5))
    assert [path.name for path in output.iterdir()] == ["my-seeds.txt"]
    assert crawl(demo_web, output, CRAWL_MAX_PAGES=5).returncode == 0


def test_all_that_a_crawl_writes_is_in_the_table(demo_web: Web, tmp_path: Path) -> None:
    """What it is claimed by is what a crawl leaves, whatever that has on."""
    from crawl4llm.base.output_dir import WRITTEN

    (tmp_path / "blocked.txt").write_text("blocked.example\n")
    rich = {"BLOCKLISTS": tmp_path / "blocked.txt", "LIVE_LOGGING": "tensorboard", "CRAWL_MAX_PAGES": 30}
    done = crawl(demo_web, tmp_path / "output", **rich)
    assert done.returncode == 0, done.stderr
    written = {path.name for path in (tmp_path / "output").iterdir()}
    assert {"blocklists", "blocklists.json", "tensorboard", "series.jsonl", "stats.json"} <= written
    assert written <= {*WRITTEN}
