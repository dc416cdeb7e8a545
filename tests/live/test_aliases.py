"""A live crawl of a blog with reply forms, a wiki with edit forms and a site with odd canonicals, killed in the middle;
then its replay, and a crawl of it by workers."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from addon_site import Answer
from continuous_cluster import begin, merged, storage_at
from crawl_helpers import PROJECT, crawl_log, scrapy, stats
from live_helpers import check_archive, crawl_live, live_args, start_live, text_page, wait_for
from owner_sites import OwnerSite, serve_owners
from valkey_helpers import eventually

POSTS, LATER, REPLIES, TITLES, ODD = 20, 6, 2, 40, 20
"""Posts on the front page, and others that lead to one another; replies to each; pages of the wiki, and half of those
of the third site."""
SETTINGS: dict[str, object] = {
    "CRAWL_BATCH_SIZE": 0,
    "CRAWL_MAX_PAGES": 1000,
    "DELAY_FACTOR": 0,
    "DOWNLOAD_DELAY": 0.01,
    "COMMIT_INTERVAL_PAGES": 5,
    "URL_POLICY": "breadth_first",
}


def with_head(answer: Answer, head: str) -> Answer:
    return answer._replace(body=answer.body.replace(b"<head>", b"<head>" + head.encode()))


def canonical(path: str) -> str:
    return f'<link rel="canonical" href="{path}">'


def blog() -> dict[str, Answer]:
    """Posts, each with links to its reply forms, which show it again; those that are not on the front page are found
    one after the other."""
    pages = {"/": text_page(0, [f"/post{number}/" for number in range(1, POSTS + 1)])}
    for number in range(1, POSTS + LATER + 1):
        post = f"/post{number}/"
        replies = [f"{post}?replytocom={10 * number + reply}" for reply in range(REPLIES)]
        later = [f"/post{number + 1}/"] if POSTS <= number < POSTS + LATER else []
        shown = with_head(text_page(number, [*later, *replies]), canonical(post))
        pages |= dict.fromkeys([post, *replies], shown)
    return pages


def wiki() -> dict[str, Answer]:
    """Titles with edit forms, all of them on the front page."""
    titles = [f"/w?title=T{number}" for number in range(TITLES)]
    pages = {"/": text_page(100, [*titles, *(f"{title}&action=edit" for title in titles)])}
    for number, title in enumerate(titles):
        pages[title] = text_page(200 + number, [])
        form = text_page(300 + number, ["/login"])
        pages[f"{title}&action=edit"] = with_head(form, '<meta name="robots" content="noindex,nofollow">')
    return pages


def odd() -> dict[str, Answer]:
    """Pages that all name the front page as canonical, or another owner's, or one another."""
    names = ["/", "http://127.0.0.11/", "/p{}?v={}", "/p{}"]
    pages = {"/": text_page(400, [f"/p{number}?v={number}" for number in range(ODD)])}
    for number in range(ODD):
        named = names[number % 4].format(number, number)
        pages[f"/p{number}?v={number}"] = with_head(text_page(500 + number, [f"/p{number}"]), canonical(named))
        pages[f"/p{number}"] = with_head(text_page(600 + number, []), canonical(f"/p{number}?v={number}"))
    return pages


def serve_pages(sites: list[OwnerSite]) -> list[str]:
    for site, pages in zip(sites, (blog(), wiki(), odd()), strict=True):
        site.pages = pages
    return [f"{site.url}/" for site in sites]


def kind_of(path: str) -> str:
    return "reply" if "replytocom" in path else "edit" if "action=edit" in path else "page"


def check_what_was_asked(sites: list[OwnerSite]) -> None:
    """Everything once but reply and edit forms, of which few more than are needed to learn are asked for."""
    for site in sites:
        asked = {path for path in site.paths() if path in site.pages}
        left = Counter(kind_of(path) for path in set(site.pages) - asked)
        assert left["page"] == 0, sorted(set(site.pages) - asked)
    replies = sum(kind_of(path) == "reply" for path in set(sites[0].paths()))
    edits = sum(kind_of(path) == "edit" for path in set(sites[1].paths()))
    assert 5 <= replies <= 5 + 12
    assert 20 <= edits < TITLES - 5


def check_aliases(figures: dict[str, Any], replies: int) -> None:
    """The replies but those of two posts: a page may have taken the place of a post in the table of known pages. Which
    pages share a place, the ports decide."""
    assert replies - 2 * REPLIES <= figures["pages/aliases"] <= replies


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A finished crawl, killed once on its way, and the hosts of the sites."""
    folder = tmp_path_factory.mktemp("aliases")
    given = {**SETTINGS, "JOBDIR": folder / "job", "NOINDEX": "archive"}
    with serve_owners(3) as sites:
        seeds = serve_pages(sites)
        process = start_live(seeds, folder / "run", **{**given, "DOWNLOAD_DELAY": 0.05})
        wait_for(lambda: len(sites[0].paths()) >= POSTS)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        result = crawl_live(seeds, folder / "run", **given)
        assert result.returncode == 0, result.stdout + result.stderr
        check_what_was_asked(sites)
    return folder / "run", [seed[:-1] for seed in seeds]


def test_forms_are_not_asked_for_once_they_are_known(crawled: tuple[Path, list[str]]) -> None:
    output, (blog_url, wiki_url, _) = crawled
    check_archive(output)
    assert scrapy("frontier", str(output.parent / "job"), "--verify").stdout.startswith("sound: ")
    figures = stats(output)
    failures = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    dropped = [line for line in failures if line["reason"] == "alias"]
    rules = Counter(line["rule"] for line in dropped)
    assert set(rules) == {
        "URL_ALIAS_PAIRS ?replytocom of 127.0.0.11",
        "URL_WORTHLESS_PAGES ?action=edit of 127.0.0.12",
    }
    assert figures["dropped/alias"] == len(dropped)
    assert [figures[f"links/alias/{kind}"] for kind in ("canonical", "worthless")] == list(rules.values())
    assert (figures["aliases/learnt"], figures.get("aliases/ended", 0)) == (2, 0)
    assert figures["links/alias/followed"] <= REPLIES * (POSTS + LATER)
    replies = [line for line in crawl_log(output) if "replytocom" in line["id"]]
    check_aliases(figures, len(replies))
    assert all(line["parent"] == f"{wiki_url}/" for line in dropped if "edit" in line["id"]), "they were queued"
    archived = b"".join(gzip.decompress(path.read_bytes()) for path in sorted((output / "warc").glob("*.warc.gz")))
    noted = [line for line in archived.split(b"\r\n") if line.startswith(f"canonical: {blog_url}".encode())]
    assert len(noted) == len(replies), "that of a post is its own"


def test_explain_names_the_rule(crawled: tuple[Path, list[str]]) -> None:
    output, _ = crawled
    failures = [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]
    dropped = [line for line in failures if line["reason"] == "alias"]
    for one in (next(line for line in dropped if name in line["id"]) for name in ("replytocom", "action=edit")):
        told = scrapy("explain", one["id"], "--run", str(output), "-s", "SCORER=length")
        assert told.returncode == 0, told.stderr
        lines = [line.split(maxsplit=1) for line in told.stdout.splitlines()]
        assert ["dropped", "alias"] in lines
        assert ["rule", one["rule"]] in lines


def replay(output: Path, folder: Path, **settings: object) -> dict[str, bytes]:
    """Crawl the archive of a crawl with the policy of that; return the logs."""
    given: dict[str, object] = {
        **{"CORPUS": output, "OUTPUT_DIR": folder / "run", "SIMULATION_TEXT": "extracted", "SCORER": "length"},
        **{"URL_POLICY": "breadth_first", "CRAWL_BATCH_SIZE": 5, "NEAR_DUPLICATES": "follow", "CRAWL_SEEDS": 3},
        **settings,
    }
    arguments = [part for name, value in given.items() for part in ("-s", f"{name}={value}")]
    done = scrapy("crawl", "influence", "-a", f"seeds={output.with_suffix('.seeds')}", *arguments)
    assert done.returncode == 0, done.stderr
    return {name: (folder / "run" / name).read_bytes() for name in ("crawl.jsonl", "failures.jsonl")}


def test_a_replay_goes_by_it_if_it_is_asked_to(crawled: tuple[Path, list[str]], tmp_path: Path) -> None:
    """By default it does not; with it on it is the same when it is taken up again."""
    output, _ = crawled
    on = {"URL_ALIAS_PAIRS": 3, "URL_WORTHLESS_PAGES": 8}
    default = replay(output, tmp_path / "default")
    whole = replay(output, tmp_path / "whole", **on)
    parts = {**on, "JOBDIR": tmp_path / "job", "COMMIT_INTERVAL_PAGES": 5}
    replay(output, tmp_path / "parts", **parts, CRAWL_MAX_PAGES=40)
    assert replay(output, tmp_path / "parts", **parts, CRAWL_MAX_PAGES=10_000) == whole
    assert "aliases/learnt" not in stats(tmp_path / "default/run")
    assert stats(tmp_path / "whole/run")["aliases/learnt"] == 2
    by_default, with_it = (
        Counter(kind_of(json.loads(line)["id"]) for line in logs["crawl.jsonl"].splitlines())
        for logs in (default, whole)
    )
    assert by_default == Counter(kind_of(line["id"]) for line in crawl_log(output)), "all that the archive has"
    assert with_it["page"] == by_default["page"]
    assert with_it["edit"] < by_default["edit"]
    assert with_it["reply"] <= by_default["reply"]


def test_workers_learn_it_whoever_dies(tmp_path: Path) -> None:
    storage = storage_at(tmp_path / "storage", 2)
    lease = {"CLUSTER_LEASE": 2, "DOWNLOAD_TIMEOUT": 10}
    given: dict[str, Any] = {**SETTINGS, **storage, **lease, "COMMIT_INTERVAL_SECONDS": 1}
    with serve_owners(3) as sites:
        seeds = serve_pages(sites)
        seeds_file = tmp_path / "first.seeds"
        seeds_file.write_text("".join(f"{seed}\n" for seed in seeds))
        worker = begin(live_args(seeds, tmp_path / "first", **{**given, "DOWNLOAD_DELAY": 0.05}), SCRAPY_PROJECT="live")
        eventually(lambda: len(sites[0].paths()) > POSTS // 2, 120)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.communicate()
        result = crawl_live(seeds, tmp_path / "second", **given)
        assert result.returncode == 0, result.stdout + result.stderr
        check_what_was_asked(sites)
    log = merged(storage, tmp_path / "merged")
    figures = stats(tmp_path / "merged")
    failures = (tmp_path / "merged/failures.jsonl").read_text().splitlines()
    assert figures["dropped/alias"] == sum('"alias"' in line for line in failures) > 15
    check_aliases(figures, sum("replytocom" in line["id"] for line in log))
    assert not any("action=edit" in line["id"] for line in log), "they are learnt from, though they are dropped"


def test_the_live_profile_has_it() -> None:
    text = (PROJECT / "settings/live.py").read_text()
    assert "URL_ALIAS_PAIRS = 5\n" in text
    assert "URL_WORTHLESS_PAGES = 20\n" in text
