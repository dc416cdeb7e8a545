"""A live crawl of a blog, killed in the middle, and replays of its archive: what its software makes besides posts is
not asked for, once two of its pages tell the software."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from addon_site import Answer, page, serve
from continuous_cluster import merged, storage_at
from crawl_helpers import crawl_log, scrapy, stats
from live_helpers import SCORER, check_archive, crawl_live, moved, start_live, wait_for

POSTS = 12
OF_FIRST = {"/post-0/?replytocom=1": "reply", "/tag/red/": "tag", "/2020/05/": "date"}
"""Queued before the blog is recognised."""
OF_POSTS = {"/feed/": "feed", "/author/anna/": "author", "/wp-login.php": "form"}


def of_wordpress(answer: Answer) -> Answer:
    return answer._replace(
        body=answer.body.replace(b"<head>", b'<head><meta name="generator" content="WordPress 6.1">')
    )


def blog() -> dict[str, Answer]:
    """A chain of posts; the seed ``/tag/seed/`` is what a rule would drop."""
    web = {
        "/": of_wordpress(page(0.5, ["/post-0/", *OF_FIRST], seed=100)),
        "/tag/seed/": of_wordpress(page(0.5, ["/category/cats/"], seed=101)),
        "/category/cats/": of_wordpress(page(0.5, seed=102)),
        "/moved/": moved("/author/bert/"),
    }
    for number in range(POSTS):
        links = [f"/post-{number + 1}/", f"/post-{number}/feed/", "/moved/", *OF_POSTS]
        web[f"/post-{number}/"] = of_wordpress(page(0.5, links, seed=number))
    web[f"/post-{POSTS}/"] = of_wordpress(page(0.5, seed=POSTS))
    for path in (*OF_FIRST, *OF_POSTS, "/author/bert/"):
        web[path] = page(0.9, seed=200)
    return web


GOOD = {"/", "/tag/seed/", "/category/cats/", *(f"/post-{number}/" for number in range(POSTS + 1))}
DROPPED = {
    **OF_FIRST,
    **OF_POSTS,
    "/moved/": "author",
    **{f"/post-{number}/feed/": "feed" for number in range(POSTS)},
}
SETTINGS: dict[str, object] = {
    "URL_POLICY": "breadth_first",
    "CRAWL_BATCH_SIZE": 0,
    "CRAWL_MAX_PAGES": 100,
    "SITE_RULES": None,  # the profile's
}
RULES = {path: f"SITE_RULES wordpress.{rule}" for path, rule in DROPPED.items()}


def dropped(output: Path, url: str) -> dict[str, str]:
    """Return the rules by which documents were dropped as ``site_rule``, by path."""
    lines = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    some = [line for line in lines if line["reason"] == "site_rule"]
    assert len(some) == len({line["id"] for line in some}), "each once"
    return {line["id"].removeprefix(url): line["rule"] for line in some}


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The output of the crawl, and the URL of the blog."""
    folder = tmp_path_factory.mktemp("site_rules")
    settings = {**SETTINGS, "JOBDIR": folder / "job", "COMMIT_INTERVAL_PAGES": 1, "DELAY_FACTOR": 0}
    settings["CONCURRENT_REQUESTS_PER_DOMAIN"] = 1
    with serve(blog()) as served:
        seeds = [f"{served.url}/", f"{served.url}/tag/seed/"]
        process = start_live(seeds, folder / "run", **settings, DOWNLOAD_DELAY=0.2)
        wait_for(lambda: len(served.paths()) >= POSTS // 2)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        assert f"/post-{POSTS}/" not in served.paths()
        result = crawl_live(seeds, folder / "run", **settings)
        assert result.returncode == 0, result.stdout + result.stderr
        asked = set(served.paths())
    assert asked == {*GOOD, "/moved/"}
    return folder / "run", served.url


def test_what_the_software_makes_is_not_asked_for_after_a_kill(crawled: tuple[Path, str]) -> None:
    output, url = crawled
    check_archive(output)
    assert {line["id"].removeprefix(url) for line in crawl_log(output)} == GOOD
    assert dropped(output, url) == RULES
    figures = stats(output)
    assert figures["dropped/site_rule"] == len(DROPPED)
    assert figures["links/site_rule/wordpress.feed"] == POSTS + 1
    assert figures["links/site_rule/wordpress.reply"] == 1
    assert figures["sites/recognised"] == 1


def test_explain_names_the_rule(crawled: tuple[Path, str]) -> None:
    output, url = crawled
    shown = scrapy("explain", f"{url}/tag/red/", "--run", str(output), "-s", f"SCORER={SCORER}")
    assert shown.returncode == 0, shown.stderr
    assert "site_rule" in shown.stdout
    assert "SITE_RULES wordpress.tag" in shown.stdout


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The output of a crawl without rules, and the URL of the blog."""
    output = tmp_path_factory.mktemp("no_rules") / "run"
    with serve(blog()) as served:
        seeds = [f"{served.url}/", f"{served.url}/tag/seed/"]
        result = crawl_live(seeds, output, **{**SETTINGS, "SITE_RULES": "", "DELAY_FACTOR": 0})
        assert result.returncode == 0, result.stdout + result.stderr
    assert dropped(output, served.url) == {}
    assert len(crawl_log(output)) == len({*GOOD, *OF_FIRST, *OF_POSTS, "/moved/"})
    return output, served.url


def replay(corpus: tuple[Path, str], output: Path, **settings: object) -> list[str]:
    """Return the arguments of a simulation of the archive."""
    archive, url = corpus
    output.with_suffix(".seeds").write_text(f"{url}/\n{url}/tag/seed/\n")
    given = {
        **SETTINGS,
        "CORPUS": archive,
        "OUTPUT_DIR": output,
        "SCORER": SCORER,
        "SIMULATION_TEXT": "extracted",
        "SITE_RULES": "blogs",
        **settings,
    }
    return [
        *("crawl", "influence", "-a", f"seeds={output.with_suffix('.seeds')}"),
        *(part for name, value in given.items() for part in ("-s", f"{name}={value}")),
    ]


@pytest.mark.parametrize("batch", [0, 1, 5])
def test_a_replay_goes_by_the_same_rules(corpus: tuple[Path, str], tmp_path: Path, batch: int) -> None:
    result = scrapy(*replay(corpus, tmp_path / "run", CRAWL_BATCH_SIZE=batch))
    assert result.returncode == 0, result.stderr
    assert {line["id"].removeprefix(corpus[1]) for line in crawl_log(tmp_path / "run")} == GOOD
    assert dropped(tmp_path / "run", corpus[1]) == RULES


def test_simulations_have_no_rules_unless_asked(corpus: tuple[Path, str], tmp_path: Path) -> None:
    result = scrapy(*replay(corpus, tmp_path / "run", SITE_RULES=""))
    assert result.returncode == 0, result.stderr
    assert dropped(tmp_path / "run", corpus[1]) == {}
    assert len(crawl_log(tmp_path / "run")) > len(GOOD)


def test_a_crawl_by_partitions_goes_by_them(corpus: tuple[Path, str], tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage")
    result = scrapy(*replay(corpus, tmp_path / "worker", **storage))
    assert result.returncode == 0, result.stderr
    log = merged(storage, tmp_path / "merged")
    assert {line["id"].removeprefix(corpus[1]) for line in log} == GOOD
    assert dropped(tmp_path / "merged", corpus[1]) == RULES
