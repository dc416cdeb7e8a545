"""``crawl4llm live``: a whole live crawl by one command, or a line for each thing that is wrong."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from addon_site import Answer, serve
from crawl_helpers import TIMEOUT, Web, begin_python, crawl_log, python, scrapy, stats
from scrapy_server import Process

from crawl4llm.scoring.fasttext_file import inspect_model
from crawl4llm.scoring.model_rules import ModelRules, rules_path
from tests.testweb import DemoPages, LocalWeb, read_log, running

PAGES = 90
CONTACT = "https://example.org/crawler"
GOOD = ("--contact", CONTACT, "-s", "SCORER=length")


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalWeb]:
    """A web of thirty sites on this machine."""
    with running(LocalWeb(tmp_path_factory.mktemp("web"), DemoPages(pages=600, hosts=30, seed=0))) as web:
        yield web


@pytest.fixture(autouse=True)
def _no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment in which no project is named."""
    for name in [name for name in os.environ if name.startswith("SCRAPY_")]:
        monkeypatch.delenv(name)


def live(folder: Path, *args: object) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder to its end."""
    return python("-m", "crawl4llm", "live", *args, cwd=folder)


def of(web: LocalWeb, *more: object) -> list[object]:
    """The arguments of a crawl of the local web, with a delay for people in a hurry."""
    settings = (f"DNS_HOSTS={web.hosts_file}", "NETWORK_ALLOWED=127.0.0.0/8", "DOWNLOAD_DELAY=0.1", "IP_RATE=0")
    given = [part for setting in (*settings, "SCORING_WORKERS=1") for part in ("-s", setting)]
    return [web.seeds_file, *GOOD, *given, "--pages", PAGES, *more]


def errors(folder: Path, *args: object) -> list[str]:
    """What is said to be wrong, line by line; fails unless nothing was begun and nothing was written."""
    before = sorted(folder.rglob("*"))
    result = scrapy("live", *map(str, args), cwd=folder)
    assert result.returncode == 1, result.stdout + result.stderr
    assert not result.stdout
    assert sorted(folder.rglob("*")) == before
    lines = result.stderr.splitlines()
    assert all(line.startswith("crawl4llm: error: ") for line in lines), result.stderr
    return [line.removeprefix("crawl4llm: error: ") for line in lines]


# -- bad input --------------------------------------------------------------------------------------------------------


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    seeds, contact, scorer = errors(tmp_path)
    assert seeds.startswith("SEEDS are missing")
    assert contact.startswith("--contact is missing")
    assert "mlfoundations/fasttext-oh-eli5" in scorer
    assert "openhermes_reddit_eli5_vs_rw_v2_bigram_200k_train.bin" in scorer
    assert "trainscorer --positive good/*.jsonl --negative ordinary/*.jsonl --out" in scorer
    args = (
        "--contact",
        "nobody",
        "--scorer",
        "none.bin",
        "-s",
        "DELAY_FACTOR=x",
        "-s",
        "DISK_MIN_FREE=1000000000000000",
    )
    named = [
        "SEEDS 'none.txt'",
        "--contact 'nobody'",
        "DELAY_FACTOR = 'x'",
        "SCORER_MODEL none.bin",
        "--out crawls/live",
    ]
    assert [line[: len(name)] for line, name in zip(errors(tmp_path, "none.txt", *args), named, strict=True)] == named


def test_a_contact_that_is_none(tmp_path: Path, web: LocalWeb) -> None:
    (line,) = errors(tmp_path, *of(web), "--contact", "https://example.org/\nX: y")
    assert line.startswith("--contact 'https://example.org/\\nX: y' is no URL and no mail address")


@pytest.mark.parametrize(
    ("seeds", "said"),
    [
        ("", "no usable seed (empty); give http or https URLs"),
        ("# only a remark\n", "no usable seed (empty)"),
        ("example.org\nftp://example.org/\n", "no usable seed (2 given, 1 malformed, 1 unknown)"),
        ("\0\n", "no usable seed"),
    ],
)
def test_a_file_without_seeds(seeds: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text(seeds)
    (line,) = errors(tmp_path, "seeds.txt", *GOOD)
    assert line.startswith("seeds file seeds.txt: ")
    assert said in line


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["none.txt"], "there is no such file, and it is no URL"),
        (["example.org"], "there is no such file, and it is no URL"),
        ([""], "there is no such file"),
        (["https://"], "is no http or https URL"),
        (["ftp://example.org/"], "is no http or https URL"),
        (["https://example.org/", "www.example.org"], "'www.example.org': it is no URL"),
        (["."], "cannot be read"),
    ],
)
def test_seeds_that_are_none(args: list[str], said: str, tmp_path: Path) -> None:
    (line,) = errors(tmp_path, *args, *GOOD)
    assert said in line


def test_models_that_do_not_fit(tmp_path: Path, web: LocalWeb, demo_web: Web) -> None:
    model = tmp_path / "model.bin"
    model.write_bytes(demo_web.model.read_bytes())
    args = [arg for arg in of(web) if arg != "SCORER=length"]
    args.remove("-s")
    (tmp_path / "text.bin").write_text("no model")
    assert "is not a fastText model" in errors(tmp_path, *args, "--scorer", "text.bin")[0]
    assert "No such file" in errors(tmp_path, *args, "--scorer", "none.bin")[0]
    (label,) = errors(tmp_path, *args, "--scorer", model, "-s", "SCORER_LABEL=__label__best")
    assert "'__label__best' is not a label of" in label
    rules = ModelRules("__label__hq", "resiliparse", inspect_model(model).digest)
    rules_path(model).write_text(json.dumps(rules.to_json()))
    (extractor,) = errors(tmp_path, *args, "--scorer", model, "-s", "TEXT_EXTRACTOR=trafilatura")
    assert "TEXT_EXTRACTOR = 'trafilatura' does not fit SCORER_MODEL" in extractor
    assert "resiliparse" in extractor
    shown = live(tmp_path, *args, "--scorer", model, "--dry-run")
    assert shown.returncode == 0, shown.stderr  # the profile's extractor gives way to the model's
    rules_path(model).write_text("{}")
    assert str(rules_path(model)) in errors(tmp_path, *args, "--scorer", model)[0]


def test_settings_that_have_an_option(tmp_path: Path, web: LocalWeb) -> None:
    lines = errors(tmp_path, *of(web), "-s", "OUTPUT_DIR=x", "-s", "JOBDIR=y", "-s", "CRAWL_MAX_PAGE=3")
    assert lines == [
        "-s OUTPUT_DIR= does not go here; give --out DIR",
        "-s JOBDIR= does not go here; give --out DIR, which has it in DIR/job",
        "setting CRAWL_MAX_PAGE is not known; did you mean CRAWL_MAX_PAGES?",
    ]


def test_a_disk_with_too_little_room(tmp_path: Path, web: LocalWeb) -> None:
    (line,) = errors(tmp_path, *of(web), "-s", "DISK_MIN_FREE=1_000_000_000_000_000")
    assert re.match(
        r"--out crawls/live: its disk has [\d,]+ MB free, less than DISK_MIN_FREE \(1,000,000,000 MB\)", line
    )


def test_seeds_that_nobody_can_ask(tmp_path: Path, web: LocalWeb) -> None:
    args = of(web)[1:]
    assert errors(tmp_path, "https://nowhere.test/", *args) == [
        "nowhere.test has no address in DNS_HOSTS; nothing can be asked"
    ]
    (line,) = errors(tmp_path, "http://127.0.0.1:9/", *GOOD)
    assert line == "127.0.0.1 has the address 127.0.0.1, which NETWORK_ALLOWED does not allow; nothing can be asked"


def test_an_output_folder_that_is_taken(tmp_path: Path, web: LocalWeb) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken/crawl.jsonl").touch()
    (tmp_path / "file").touch()
    (tmp_path / "other/job").mkdir(parents=True)
    (tmp_path / "other/job/photo.jpg").touch()
    assert errors(tmp_path, *of(web), "--out", "taken")[0].startswith("--out taken holds another crawl (crawl.jsonl)")
    assert errors(tmp_path, *of(web), "--out", "file") == ["--out file cannot be written: file is no folder"]
    assert errors(tmp_path, *of(web), "--out", "file/x")[0].startswith("--out file/x cannot be written")
    assert "JOBDIR other/job is not one of crawl4llm" in errors(tmp_path, *of(web), "--out", "other")[0]


def test_usage(tmp_path: Path) -> None:
    for args in (["seeds.txt", "--contct", "x"], ["seeds.txt", "--pages", "0"], ["seeds.txt", "-s", "X"]):
        result = live(tmp_path, *args)
        assert (result.returncode, "Traceback" in result.stderr) == (2, False), result.stderr
    told = live(tmp_path, "--help").stdout
    assert "crawl4llm live SEEDS [SEEDS ...] --contact URL" in told
    assert "--dry-run" in told
    assert not list(tmp_path.iterdir())


# -- crawls -----------------------------------------------------------------------------------------------------------


def wait_for_more_pages(process: Process, output: Path) -> None:
    """Wait until this process has crawled some pages."""
    log, end = output / "crawl.jsonl", time.monotonic() + TIMEOUT
    before = log.stat().st_size if log.exists() else 0
    while not log.exists() or log.stat().st_size < before + 1000:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_crawl_goes_on_by_the_same_command(tmp_path: Path, web: LocalWeb) -> None:
    """In an empty folder, through Ctrl-C, SIGTERM and kill -9."""
    before, args, output = len(read_log(web.log_file)), of(web), tmp_path / "crawls/live"
    commits = ("-s", "COMMIT_INTERVAL_PAGES=5")
    for stop in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        process = begin_python("-m", "crawl4llm", "live", *args, *commits, cwd=tmp_path)
        wait_for_more_pages(process, output)
        process.send_signal(stop)
        out, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode == (-9 if stop == signal.SIGKILL else 130), err
        assert "Traceback" not in err
        if stop != signal.SIGKILL:
            assert "Next: the same command resumes it" in out
    ended = live(tmp_path, *args, *commits)
    assert ended.returncode == 0, ended.stderr
    assert f"Crawled {PAGES} of {PAGES} pages by link" in ended.stdout
    ids = [line["id"] for line in crawl_log(output)]
    assert len(ids) == len(set(ids)) == PAGES
    assert {path.name for path in tmp_path.iterdir()} <= {"crawls", ".scrapy"}
    assert (output / "job/job.json").is_file()
    agents = {asked.agent for asked in read_log(web.log_file)[before:]}
    assert agents == {f"crawl4llm (+{CONTACT})"}

    again = live(tmp_path, *args)
    assert (again.returncode, "This crawl is finished" in again.stdout) == (0, True)
    (line,) = errors(tmp_path, web.seeds[0], *args[1:])
    assert line == "--out crawls/live holds another crawl (other seeds); give another folder"
    python("-m", "crawl4llm", "archive", "check", "crawls/live", "--jobs", 1, cwd=tmp_path, check=True)


def test_other_settings_are_refused_and_change_nothing(tmp_path: Path, web: LocalWeb) -> None:
    args = of(web, "--out", "out", "--pages", 3)
    assert live(tmp_path, *args).returncode == 0
    before = {
        path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file() and "lock" not in path.name
    }
    refused = live(tmp_path, *args, "--within-sites")
    assert refused.returncode == 1
    assert "CRAWL_SCOPE was 'web', is 'domain'" in refused.stderr
    assert "Traceback" not in refused.stderr
    after = {
        path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file() and "lock" not in path.name
    }
    assert after == before


def test_a_start_that_fails_late_leaves_nothing(tmp_path: Path, web: LocalWeb) -> None:
    (line,) = errors(tmp_path, *of(web), "-s", "KNOWN_URLS=none.urls")
    assert "KNOWN_URLS" in line


def test_within_sites_from_urls(tmp_path: Path, web: LocalWeb) -> None:
    seeds = web.seeds[:2]
    ended = live(tmp_path, *seeds, *of(web)[1:], "--within-sites", "--pages", 12, "--contact", "me@example.org")
    assert "Traceback" not in ended.stderr
    output = tmp_path / "crawls/live"
    settings = json.loads((output / "settings.json").read_text())
    assert (settings["scope"], settings["settings"]["CRAWL_MAX_PAGES"]) == ("domain", 12)
    homes = {re.sub(r"(?:www\.)?([^/:]+).*", r"\1", seed.removeprefix("http://")) for seed in seeds}
    assert all(any(home in line["id"] for home in homes) for line in crawl_log(output))
    assert stats(output)["pages/crawled"] > 0


def test_the_profile_of_the_project(tmp_path: Path, web: LocalWeb) -> None:
    python("-m", "crawl4llm", "init", "mine", cwd=tmp_path, check=True)
    project = tmp_path / "mine"
    with (project / "settings/live.py").open("a") as profile:
        profile.write('USER_AGENT = "our-crawler/2 (+https://example.org/ours)"\nWARC_PREFIX = "ours"\n')
    before, args = len(read_log(web.log_file)), of(web, "--pages", 3)
    at = args.index("--contact")
    shown = live(project, *args[:at], *args[at + 2 :], "--dry-run")  # the user agent has a contact
    assert "our-crawler/2 (+https://example.org/ours)" in shown.stdout, shown.stderr
    assert re.search(r"^profile +settings\.live$", shown.stdout, re.MULTILINE)
    assert len(read_log(web.log_file)) == before
    ended = live(project, *args)
    assert ended.returncode == 0, ended.stderr
    assert [path.name.partition("-")[0] for path in (project / "crawls/live/warc").glob("*.warc.gz")] == ["ours"]
    agents = {asked.agent for asked in read_log(web.log_file)[before:]}
    assert agents == {f"our-crawler/2 (+{CONTACT})"}


def test_a_dry_run_sends_and_writes_nothing(tmp_path: Path, web: LocalWeb) -> None:
    before = len(read_log(web.log_file))
    with serve({"/about": Answer(b"<p>our crawler")}) as page:
        shown = live(tmp_path, *of(web, "--contact", f"{page.url}/about", "--within-sites", "--dry-run"))
        assert page.paths() == []
    assert shown.returncode == 0, shown.stderr
    assert not shown.stderr
    assert len(read_log(web.log_file)) == before
    assert not list(tmp_path.iterdir())
    for said in (
        "Nothing is sent",
        f"crawl4llm (+{page.url}/about)",
        "obeyed as crawl4llm",
        "0.1 s or more",
        "within the registrable domain",
        f"{PAGES} at most",
        "crawls/live",
        "seeds: 30; their registrable domains: ",
    ):
        assert said in shown.stdout, shown.stdout
    assert web.url(web.hosts[0], "") in shown.stdout


def test_a_contact_page_that_does_not_answer_is_a_warning(tmp_path: Path) -> None:
    pages = {"/": Answer(b"<html><body><p>A page that is long enough to have some text of its own.</p></body></html>")}
    allowed = ("-s", "NETWORK_ALLOWED=127.0.0.0/8", "-s", "SCORER=length", "-s", "DOWNLOAD_DELAY=0", "--pages", 1)
    with serve(pages) as site:
        ended = live(tmp_path, f"{site.url}/", "--contact", f"{site.url}/none", *allowed)
        assert "WARNING: The page of --contact" in ended.stderr
        assert "it is answered with status 404" in ended.stderr
        assert len(crawl_log(tmp_path / "crawls/live")) == 1
