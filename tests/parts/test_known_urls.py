"""KNOWN_URLS: what pages lead to is dropped where it is known, seeds are not; of sets and of lists alike."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from crawl_helpers import Web, crawl, crawl_log, error_of, scrapy, stats

from crawl4llm.base.errors import InputError
from crawl4llm.parts.known_urls.work import KnownUrls

SEEDS = 20


def run(web: Web, output: Path, pages: int, **settings: object) -> str:
    """Crawl; what it printed."""
    given = {"URL_POLICY": "breadth_first", "CRAWL_SEEDS": SEEDS, "CRAWL_MAX_PAGES": pages, "CRAWL_BATCH_SIZE": 20}
    result = crawl(web, output, **given, **settings)
    assert result.returncode == 0, result.stderr
    return result.stdout + result.stderr


def failures(output: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (output / "failures.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def sets(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder: ``all``, a crawl of all that the seeds lead to; a list of half of it, and the sets of both."""
    folder = tmp_path_factory.mktemp("known")
    run(demo_web, folder / "all", 1500)
    urls = [line["url"] for line in crawl_log(folder / "all")]
    (folder / "half.txt").write_text("# half of them\n" + "".join(f"{url}#part\n" for url in urls[::2]))
    for name in ("all", "half.txt"):
        made = scrapy("corpus", "known", str(folder / f"{name}.known"), str(folder / name))
        assert made.returncode == 0, made.stderr
    return folder


def test_what_is_known_is_not_crawled_but_for_seeds(demo_web: Web, sets: Path, tmp_path: Path) -> None:
    given = {"list": sets / "half.txt", "set": sets / "half.txt.known/urls.known"}
    told = {name: run(demo_web, tmp_path / name, 400, KNOWN_URLS=path) for name, path in given.items()}
    logs = [(tmp_path / name / "crawl.jsonl").read_bytes() for name in given]
    assert logs[0] == logs[1]
    lines = crawl_log(tmp_path / "set")
    known = KnownUrls([str(given["set"])])
    seeds = [line for line in lines if line["depth"] == 0]
    assert len(seeds) == SEEDS
    assert any(known.why(line["url"]) for line in seeds)
    assert not any(known.why(line["url"]) for line in lines if line["depth"])
    dropped = failures(tmp_path / "set")
    assert {(line["outcome"], line["reason"]) for line in dropped} == {("dropped", "known_url")}
    assert {line["rule"] for line in dropped} == {"KNOWN_URLS urls.known"}
    assert len({line["id"] for line in dropped}) == len(dropped)
    figures = stats(tmp_path / "set")
    assert figures["dropped/known_url"] == len(dropped) > 100
    assert 0 < figures["links/taken_for_known"] < 1e-4
    assert stats(tmp_path / "list")["links/taken_for_known"] == 0
    assert f"known URLs       {len(dropped):,} dropped, of which " in told["set"]
    assert f"{len(known):,} URLs; 1 in " in told["set"]


def test_a_set_that_holds_all_ends_the_crawl_and_says_so(demo_web: Web, sets: Path, tmp_path: Path) -> None:
    told = run(demo_web, tmp_path / "run", 400, KNOWN_URLS=sets / "all.known/urls.known")
    count = len(failures(tmp_path / "run"))
    assert f"(the frontier is empty: KNOWN_URLS has all {count:,} documents that the seeds lead to)" in told
    assert stats(tmp_path / "run")["pages/crawled"] == SEEDS


def test_a_resumed_crawl_goes_by_what_it_was_begun_with(demo_web: Web, sets: Path, tmp_path: Path) -> None:
    """Wherever that lies now; another set, or none, is refused."""
    half, job = sets / "half.txt.known/urls.known", tmp_path / "job"
    run(demo_web, tmp_path / "whole", 200, KNOWN_URLS=half)
    run(demo_web, tmp_path / "parts", 100, KNOWN_URLS=half, JOBDIR=job)
    settings = {"URL_POLICY": "breadth_first", "CRAWL_SEEDS": SEEDS, "CRAWL_BATCH_SIZE": 20, "JOBDIR": job}
    for other in ({"KNOWN_URLS": sets / "all.known/urls.known"}, {}):
        said = error_of(crawl(demo_web, tmp_path / "parts", CRAWL_MAX_PAGES=200, **settings, **other))
        assert "was begun with other settings: what KNOWN_URLS has was " in said
    shutil.copy(half, tmp_path / "moved")
    run(demo_web, tmp_path / "parts", 200, KNOWN_URLS=tmp_path / "moved", JOBDIR=job)
    ids = [[line["id"] for line in crawl_log(tmp_path / output)] for output in ("parts", "whole")]
    assert ids[0] == ids[1]
    dropped = [[line["id"] for line in failures(tmp_path / output)] for output in ("parts", "whole")]
    assert dropped[0] == dropped[1]
    assert {line["rule"] for line in failures(tmp_path / "parts")} == {"KNOWN_URLS urls.known", "KNOWN_URLS moved"}


def test_any_spelling_of_a_url_is_known(tmp_path: Path) -> None:
    """Packed or not; in the first of several files that has it."""
    urls = [
        "HTTP://One.example:80/a/../b#part",
        "https://münchen.example/ü",
        "  http://two.example  ",
        "ftp://no.example",
    ]
    (tmp_path / "list").write_text("\n".join(["# a comment", "", *urls]))
    (tmp_path / "packed").write_bytes(gzip.compress(b"http://two.example/\nhttp://three.example/\r\n"))
    known = KnownUrls([str(tmp_path / "list"), str(tmp_path / "packed")])
    names = (
        "http://one.example/b",
        "https://xn--mnchen-3ya.example/%C3%BC",
        "http://two.example/",
        "http://three.example/",
    )
    found = [known.why(url) for url in names]
    assert [one and one.rule for one in found] == [f"KNOWN_URLS {name}" for name in ("list", "list", "list", "packed")]
    assert known.why("https://one.example/b") is known.why("http://four.example/") is None
    assert len(known) == 5
    assert list(known.lines) == [
        f"KNOWN_URLS {tmp_path}/list: 3 URLs; left out 1 that are no URLs, the first is line 6 ('ftp://no.example')",
        f"KNOWN_URLS {tmp_path}/packed: 2 URLs",
    ]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is neither a set of known URLs nor a list of any; make one: "),
        (b"example.org\n", "is neither a set of known URLs nor a list of any; line 1 ('example.org') is no URL; make"),
        (gzip.compress(b"http://a.example/\n" * 999)[:-9], "is damaged after line "),
        (b"crawl4llm known set\n{}\n", "is damaged: its head is not whole"),
    ],
    ids="missing empty domains gzip head".split(),
)
def test_what_is_neither_set_nor_list_starts_no_crawl(tmp_path: Path, content: bytes | None, said: str) -> None:
    path = tmp_path / "known"
    if content is None:
        result = scrapy(
            "crawl", "influence", "-s", "CORPUS=demo", "-s", f"KNOWN_URLS={path}", "-s", f"OUTPUT_DIR={tmp_path}/run"
        )
        assert error_of(result) == f"KNOWN_URLS {path} {said}"
        assert not (tmp_path / "run").exists()
        return
    path.write_bytes(content)
    with pytest.raises(InputError) as raised:
        KnownUrls([str(path)])
    assert str(raised.value).startswith(f"KNOWN_URLS {path} {said}")


def test_a_list_that_is_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "list").write_text("http://a.example/\nhttp://b.example/\n")
    monkeypatch.setattr("crawl4llm.parts.known_urls.work.MOST_LISTED", 2)
    assert len(KnownUrls([str(tmp_path / "list")])) == 2
    monkeypatch.setattr("crawl4llm.parts.known_urls.work.MOST_LISTED", 1)
    with pytest.raises(InputError, match=r"more than 1 URLs; make one: .*scrapy corpus known \S+/list.set \S+/list$"):
        KnownUrls([str(tmp_path / "list")])
