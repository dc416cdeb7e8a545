"""What :mod:`benchmarks.mutations` attacks: a small crawl of each kind, and the commands that read it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

PROJECT: Final = Path(__file__).resolve().parents[1]
Act = list[str] | Callable[[], None]
"""Arguments of a command, or a function that a notebook calls."""


class Subject(NamedTuple):
    """What is received, and the commands that read it."""

    name: str
    folders: Sequence[str]
    """Those whose objects are changed; all of a case lies beside them."""
    acts: Sequence[tuple[str, Act]]
    """``CHANGES`` before a name: it gets folders of its own."""


CHANGES: Final = "! "


def subjects(root: Path) -> list[Subject]:
    """Return what is attacked, and the commands that read it."""
    case = root / "case"
    run, job, out, storage = (str(case / name) for name in ("run", "job", "out", "storage"))
    web = ["-s", f"CORPUS={root / 'web/clueweb22'}", "-s", "SCORER=length", "-s", "SCORING_WORKERS=0"]
    web += ["-s", "SCORE_CACHE=", "-s", "LOG_LEVEL=WARNING"]
    key = (root / "key").read_text()
    owner = (root / "owner").read_text()
    resume = ["crawl", "influence", *web, "-s", f"JOBDIR={job}", "-s", "CRAWL_MAX_PAGES=50", "-s", "WARC_TEXT=1"]

    documents, known = str(case / "export/documents/00000.jsonl.gz"), str(case / "known")
    small = ["--epochs", "1", "--buckets", "1000", "--dim", "2"]
    texts = f"{known}/texts.known"
    few = ["-s", "CRAWL_MAX_PAGES=10", "-s", "CRAWL_SEEDS=10"]

    def reads(source: str) -> list[tuple[str, Act]]:
        return [
            ("report", ["report", source]),
            ("export", ["export", source, "--out", out, *web]),
            ("archive check", ["archive", "check", source, "--jobs", "1"]),
            ("explain", ["explain", key, "--run", source, *web]),
            ("evaluate", ["evaluate", source, "--out", f"{out}-report", *web]),
            ("dashboard", lambda: _watch(source)),
            ("open_run", lambda: _open(source)),
        ]

    def stored(storage: str, batch: int) -> list[tuple[str, Act]]:
        url = f"file://{storage}"
        settings = [*web, "-s", f"STORAGE={url}", "-s", f"OUTPUT_DIR={case / 'again'}", "-s", "CRAWL_MAX_PAGES=30"]
        return [
            ("cluster status", ["cluster", "status", url]),
            ("cluster verify", ["cluster", "verify", url]),
            ("cluster merge", ["cluster", "merge", url, "--out", f"{out}-merged"]),
            ("cluster merge --index-only", ["cluster", "merge", url, "--out", f"{out}-index", "--index-only"]),
            ("frontier", ["frontier", url]),
            *reads(url),
            (f"{CHANGES}cluster compact", ["cluster", "compact", url]),
            (
                f"{CHANGES}crawl",
                ["crawl", "influence", *settings, "-s", f"CRAWL_BATCH_SIZE={batch}", "-s", "CRAWL_PARTITIONS=2"],
            ),
        ]

    return [
        Subject(
            "run",
            ["run"],
            [
                *reads(run),
                ("corpus index", ["corpus", "index", "-s", f"CORPUS={run}", "--jobs", "1"]),
                ("corpus known", ["corpus", "known", f"{out}-known", run, "--jobs", "1"]),
                ("crawl of it", ["crawl", "influence", *web, "-s", f"CORPUS={run}", "-s", "CRAWL_MAX_PAGES=5"]),
                (f"{CHANGES}archive repair", ["archive", "repair", run, "--jobs", "1"]),
                (f"{CHANGES}archive finish", ["archive", "finish", run, "--jobs", "1", "--wacz", f"{out}.wacz"]),
                (f"{CHANGES}archive purge", ["archive", "purge", owner, run, "--jobs", "1", "--yes"]),
            ],
        ),
        Subject(
            "job",
            ["job"],
            [
                ("frontier", ["frontier", job, "-s", f"OUTPUT_DIR={run}"]),
                ("frontier --verify", ["frontier", job, "--verify"]),
                ("frontier --export", ["frontier", job, "--export", f"{out}.jsonl"]),
                ("report", ["report", job]),
                ("dashboard", lambda: _watch(job)),
                ("open_run", lambda: _open(job)),
                ("explain", ["explain", key, "--run", run, "-s", f"JOBDIR={job}", *web]),
                ("archive check", ["archive", "check", run, "-s", f"JOBDIR={job}", "--jobs", "1"]),
                ("dry run", [*resume, "-s", "DRY_RUN=1"]),
                (f"{CHANGES}frontier --compact", ["frontier", job, "--compact"]),
                (f"{CHANGES}frontier --purge", ["frontier", job, "--purge", owner, "--yes"]),
                (f"{CHANGES}frontier --block", ["frontier", job, "--block", owner]),
                (f"{CHANGES}frontier --inject", ["frontier", job, "--inject", str(root / "key"), *web]),
                (
                    f"{CHANGES}archive purge",
                    ["archive", "purge", owner, run, "-s", f"JOBDIR={job}", "--jobs", "1", "--yes"],
                ),
                (f"{CHANGES}crawl", resume),
            ],
        ),
        Subject(
            "export",
            ["export", "begun"],
            [
                ("corpus known", ["corpus", "known", f"{out}-known", f"{case / 'export'}", "--jobs", "1"]),
                (
                    "trainscorer",
                    ["trainscorer", "--positive", documents, "--negative", documents, "--out", f"{out}-model", *small],
                ),
                (f"{CHANGES}export", ["export", run, "--out", str(case / "export"), "--format", "jsonl.gz", *web]),
                (
                    f"{CHANGES}export goes on",
                    ["export", run, "--out", str(case / "begun"), "--format", "jsonl.gz", *web],
                ),
                (
                    f"{CHANGES}archive purge",
                    ["archive", "purge", owner, run, "--export", str(case / "export"), "--jobs", "1", "--yes"],
                ),
            ],
        ),
        Subject(
            "wacz",
            ["wacz"],
            [
                ("export", ["export", str(case / "wacz/run.wacz"), "--out", out, *web]),
                ("export of a folder", ["export", str(case / "wacz"), "--out", f"{out}2", *web]),
                ("corpus index", ["corpus", "index", "-s", f"CORPUS={case / 'wacz'}", "--jobs", "1"]),
                ("archive check", ["archive", "check", str(case / "wacz"), "--jobs", "1"]),
                ("open_run", lambda: _open(str(case / "wacz"))),
                (f"{CHANGES}finish", ["archive", "finish", run, "--jobs", "1", "--wacz", str(case / "wacz/run.wacz")]),
            ],
        ),
        Subject(
            "known",
            ["known"],
            [
                ("export --known", ["export", run, "--out", out, "--known", texts, *web]),
                (
                    "crawl",
                    [
                        "crawl",
                        "influence",
                        *web,
                        *few,
                        *_set(KNOWN_URLS=f"{known}/urls.known"),
                        *_set(KNOWN_TEXTS=texts),
                    ],
                ),
            ],
        ),
        Subject("batches", ["storage"], stored(storage, 10)),
        Subject("journals", ["continuous"], stored(str(case / "continuous"), 0)),
    ]


def _set(**settings: object) -> list[str]:
    """Return settings as a command takes them."""
    return [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]


def _watch(given: str) -> None:
    """Read a crawl as the dashboard does."""
    from scrapy.utils.project import get_project_settings

    from crawl4llm.tools.dashboard import child
    from crawl4llm.tools.dashboard.watch import open_crawl

    settings = get_project_settings()
    watch = open_crawl(given, settings)
    sys.stdout.write(watch.now().decode())
    time.sleep(0.05)
    sys.stdout.write(watch.now().decode())
    with suppress(OSError):
        sys.stdout.write(str(child.text(str(watch.output), "0")))
    if given.endswith("job"):
        sys.stdout.write(str(child.frontier(given)))


def _open(given: str) -> None:
    """Read a crawl as a notebook does."""
    from crawl4llm import open_run
    from crawl4llm.base.errors import PageError

    crawl = open_run(given)
    sys.stdout.write(f"{crawl!r} {crawl.stats.get('finish_reason')!r} {crawl.crawl_log().num_rows}")
    sys.stdout.write(f" {crawl.failures().num_rows}")
    for page in crawl.pages():
        with suppress(PageError):
            sys.stdout.write(f"{page.id!r} {len(page.text)} {len(page.links)}\n")


def _killed(arguments: list[str]) -> None:
    """Export, in a process that ends before its last step."""
    from scrapy.cmdline import execute

    from crawl4llm.tools.export.folder import ExportFolder

    ExportFolder.finish = lambda *_: os._exit(9)  # type: ignore[method-assign]
    execute(["scrapy", *arguments])


def make(root: Path, status_of: Callable[[Act], int]) -> None:
    """Make a small crawl of each kind in ``case`` of a folder, and copy it to ``pristine``; ``status_of`` gives
    that of a command, or of a function, in a child process."""
    case, web = root / "case", root / "web"
    for name in ("home", "tmp", "cwd"):
        (case / name).mkdir()
    shutil.copyfile(PROJECT / "scrapy.cfg", case / "cwd/scrapy.cfg")

    def scrapy(*arguments: str) -> None:
        if status_of(list(arguments)):
            raise RuntimeError(f"{arguments}: {(root / 'err').read_text()[-2000:]}")

    scrapy("corpus", "demo", "--to", str(web), "--pages", "400", "--hosts", "30")
    sets = {"CORPUS": web / "clueweb22", "SCORER": "length", "SCORING_WORKERS": 0, "SCORE_CACHE": "", "CRAWL_SEEDS": 10}
    sets |= {"CRAWL_MAX_PAGES": 30}

    def crawl(**more: object) -> None:
        scrapy("crawl", "influence", *_set(**{**sets, **more}))

    made = case / "run"
    crawl(OUTPUT_DIR=made, JOBDIR=case / "job", WARC_TEXT=1, WARC_MAX_BYTES=60_000)
    line = (made / "crawl.jsonl").read_text().splitlines()[3]
    from crawl4llm.base.domains import owner_of

    (root / "key").write_text(json.loads(line)["id"])
    (root / "owner").write_text(owner_of(json.loads(line)["url"]))
    export = ["export", str(made), "--format", "jsonl.gz", "-s", "SCORER=length", "-s", "SCORING_WORKERS=0", "--out"]
    scrapy(*export, str(case / "export"))
    status_of(partial(_killed, [*export, str(case / "begun")]))
    (case / "wacz").mkdir()
    copy = case / "finished"
    shutil.copytree(made, copy)
    scrapy("archive", "finish", str(copy), "--jobs", "1", "--wacz", str(case / "wacz/run.wacz"))
    shutil.rmtree(copy)
    scrapy("corpus", "known", str(case / "known"), str(case / "export"))
    for name, batch in (("storage", 10), ("continuous", 0)):
        (case / name).mkdir()
        crawl(
            STORAGE=f"file://{case / name}", CRAWL_PARTITIONS=2, CRAWL_BATCH_SIZE=batch, OUTPUT_DIR=case / f"w-{batch}"
        )
    for name in ("home", "tmp", "cwd"):
        shutil.rmtree(case / name)
    shutil.copytree(case, root / "pristine")
