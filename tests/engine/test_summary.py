"""What a crawl says of itself at its end: comparisons with other runs, and the exit status where most failed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from crawl_helpers import Web, crawl, error_of
from driven_crawl import Driven, scored

from crawl4llm.crawl.ends import FRONTIER_EMPTY
from crawl4llm.engine.summary import mostly_failed, summary

WEB = scored(
    {"1": ["5", "3", "8"], "2": ["5", "6"], "3": [], "5": ["9", "7"], "6": ["4"], "7": [], "8": [], "9": [], "4": []}
)
NewRun = Callable[..., Driven]


@pytest.fixture
def new_run(tmp_path: Path) -> Iterator[NewRun]:
    """Makes finished crawls of WEB, each in a folder of its own beside the others."""
    with ExitStack() as opened:

        def make(name: str, corpus: str = "graph", **options: Any) -> Driven:
            folder = tmp_path / name
            folder.mkdir()
            driven = Driven(WEB, folder, crawl_batch_size=1, **options)
            opened.callback(driven.close)
            driven.run("1", "2")
            facts = {"policy": driven.crawl.policy.name, "corpus": corpus}
            (folder / "settings.json").write_text(json.dumps(facts))
            figures = {f"crawl4llm/{key}": value for key, value in driven.crawl.statistics().items()}
            (folder / "stats.json").write_text(json.dumps({**figures, "finish_reason": driven.crawl.finished}))
            return driven

        yield make


def comparisons(run: Driven, folder: Path) -> list[str]:
    lines = summary(run.crawl, run.crawl.finished or "", folder).splitlines()
    return [line.strip() for line in lines if "times that of" in line]


def mean(run: Driven, pages: int) -> float:
    return fmean(line["influence"] for line in run.lines[:pages])


def test_new_quality_documents_are_told(new_run: NewRun, tmp_path: Path) -> None:
    run = new_run("0001", quality_threshold=0.5)
    assert run.figures["pages/new_quality"] == 5
    assert run.figures["new_quality/per_1000_fetches"] == 1000 * 5 / 9
    spent = {"new_quality/per_gb": 1234.5, "new_quality/per_cpu_hour": 60.2}
    told = summary(run.crawl, "max_pages", tmp_path / "0001", spent)
    assert "  new quality      5 documents, 555.6 per 1,000 fetches, 1,234 per GB, 60 per CPU hour\n" in told
    assert "new quality" not in summary(new_run("0002").crawl, "max_pages", tmp_path / "0002")


# -- comparisons ------------------------------------------------------------------------------------------------------


def test_two_exhausted_runs_have_the_same_pages_and_are_not_compared(new_run: NewRun, tmp_path: Path) -> None:
    new_run("0001", url_policy="breadth_first")
    ours = new_run("0002")
    assert ours.crawl.finished == FRONTIER_EMPTY
    assert comparisons(ours, tmp_path / "0002") == []


def test_neither_are_the_seeds_which_all_policies_begin_with(new_run: NewRun, tmp_path: Path) -> None:
    new_run("0001", url_policy="breadth_first", crawl_max_pages=2)
    assert comparisons(new_run("0002", crawl_max_pages=5), tmp_path / "0002") == []


@pytest.mark.parametrize(("theirs", "ours"), [(4, 4), (6, 4), (4, 6), (9, 4), (4, 9), (100, 4), (4, 100)])
def test_runs_are_compared_at_as_many_pages_as_both_have(
    theirs: int, ours: int, new_run: NewRun, tmp_path: Path
) -> None:
    other = new_run("0001", url_policy="breadth_first", crawl_max_pages=theirs)
    run = new_run("0002", crawl_max_pages=ours)
    (line,) = comparisons(run, tmp_path / "0002")
    at = "4 pages" if ours == 4 else "at 4 pages"
    factor = mean(run, 4) / mean(other, 4)
    assert line == f"{factor:.2f} times that of breadth_first ({mean(other, 4):.3f}, {at}, {tmp_path / '0001'})"
    assert factor > 1


@pytest.mark.parametrize(
    "log", ["", "{", "[]\n", '{"influence": "much"}\n' * 4, '{"influence": null}\n' * 4, '{"influence": 1}\n' * 3]
)
def test_a_log_that_cannot_be_compared_is_passed_over(log: str, new_run: NewRun, tmp_path: Path) -> None:
    new_run("0001", url_policy="breadth_first", crawl_max_pages=4)
    ours = new_run("0002", crawl_max_pages=4)
    (tmp_path / "0001/crawl.jsonl").write_text(log)
    assert comparisons(ours, tmp_path / "0002") == []


def test_runs_of_another_scope_are_not_compared(new_run: NewRun, tmp_path: Path) -> None:
    new_run("0001", url_policy="breadth_first", crawl_max_pages=4)
    ours = new_run("0002", crawl_max_pages=4)
    facts = json.loads((tmp_path / "0001/settings.json").read_text())
    (tmp_path / "0001/settings.json").write_text(json.dumps({**facts, "scope": "seed-hosts"}))
    assert comparisons(ours, tmp_path / "0002") == []


# -- where most failed ------------------------------------------------------------------------------------------------


def failing(folder: Path, reasons: list[str], pages: int, corpus: str = "graph", policy: str = "random") -> str | None:
    """The verdict on a crawl of as many pages, with failures besides."""
    keys = [f"{number:03d}" for number in range(len(reasons) + pages)]
    driven = Driven(scored({key: [] for key in keys}), folder, url_policy=policy)
    driven.start(*keys)
    for lease, reason in zip(driven.dequeue(), [*reasons, *[None] * pages], strict=True):
        if reason is None:
            driven.fetch(lease)
        else:
            driven.crawl.failed(lease, reason)
    driven.advance()
    (folder / "settings.json").write_text(json.dumps({"corpus": corpus}))
    verdict = mostly_failed(driven.crawl, folder)
    driven.close()
    return verdict


@pytest.mark.parametrize("reason", ["corrupt_record", "error", "killed", "timeout", "no_html"])
def test_the_reason_an_example_and_what_to_check(reason: str, tmp_path: Path) -> None:
    verdict = failing(tmp_path, ["http_404", "http_404", *[reason] * 15], 8)
    example = next(
        line["id"] for line in map(json.loads, (tmp_path / "failures.jsonl").open()) if line["reason"] == reason
    )
    assert verdict is not None
    assert verdict.startswith(f"15 of 25 documents asked for failed, 15 for {reason} ({example}, for example): check ")


@pytest.mark.parametrize(
    ("reasons", "pages"),
    [
        (["timeout"] * 10, 10),
        (["timeout"] * 19, 0),
        (["http_404"] * 15 + ["timeout"] * 10, 0),
        (["http_404"] * 50, 0),
        (["robots"] * 25, 1),
    ],
    ids=["just half", "fewer than 20 were asked for", "half and others", "not there", "robots"],
)
def test_other_failures_are_the_documents_own(reasons: list[str], pages: int, tmp_path: Path) -> None:
    assert failing(tmp_path, reasons, pages) is None


def test_several_reasons_count_together(tmp_path: Path) -> None:
    verdict = failing(tmp_path, ["timeout"] * 6 + ["killed"] * 8, 6)
    assert verdict is not None
    assert verdict.startswith("14 of 20 documents asked for failed, 8 for killed (")


def test_a_live_crawl_is_judged_only_where_it_archived_nothing(tmp_path: Path) -> None:
    assert failing(tmp_path, ["timeout"] * 30, 1, corpus="live") is None
    (tmp_path / "none").mkdir()
    verdict = failing(tmp_path / "none", ["timeout"] * 30, 0, corpus="live")
    assert verdict is not None
    assert "30 of 30 documents" in verdict
    assert "DOWNLOAD_TIMEOUT" in verdict


def test_a_corpus_of_which_nearly_all_documents_are_damaged(demo_web: Web, tmp_path: Path) -> None:
    """By a policy that looks ahead: the seeds have a score, and cannot be fetched."""
    damaged = Web(Path(shutil.copytree(demo_web.corpus, tmp_path / "tree")), demo_web.model)
    for path in (damaged.corpus / "outlink").rglob("*.gz"):
        path.write_bytes(bytes(path.stat().st_size))
    given = {"JOBDIR": tmp_path / "job", "URL_POLICY": "influence"}
    result = crawl(damaged, tmp_path / "run", CRAWL_MAX_PAGES=300, CRAWL_SEEDS=40, **given)
    told = error_of(result)
    assert "for corrupt_record (clueweb22-" in told
    assert "CORPUS" in told
    assert result.stderr.splitlines()[-1].endswith(told)
    assert result.returncode == 1
    again = crawl(damaged, tmp_path / "run", CRAWL_MAX_PAGES=300, CRAWL_SEEDS=40, **given)
    assert "This crawl is finished" in again.stdout
    assert error_of(again) == told
