"""What the tests of the evaluation share: runs written by hand, and reports read back."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scrapy.settings import Settings

from crawl4llm.scoring import ScoringOptions
from crawl4llm.tools.evaluate.figures import Report, Table

if TYPE_CHECKING:
    from crawl4llm.tools.evaluate.evaluate import Wanted

FACTS: Mapping[str, Any] = {
    "corpus_digest": "c" * 64,
    "model_digest": "sha256:" + "a" * 64,
    "scorer": "fasttext",
    "label": "__label__hq",
    "text": "corpus",
    "extractor": None,
    "policy": "influence",
    "settings": {"CRAWL_MAX_PAGES": 3},
}


def line(order: int, **given: Any) -> dict[str, Any]:
    """A line of a crawl log."""
    return {
        "order": order,
        "iteration": 0,
        "id": f"key{order}",
        "url": f"http://site{order}.example.org/",
        "status": 200,
        "priority": 0.5,
        "influence": 0.5,
        "depth": 0,
        "parent": None,
        "visited": order + 1,
        "fetched": order + 1,
        **given,
    }


def write_run(
    path: Path, lines: Sequence[Mapping[str, Any]], *, finished: str | None = "max_pages", **facts: Any
) -> Path:
    """The output directory of a crawl that ended for a reason, or was killed."""
    path.mkdir()
    (path / "settings.json").write_text(json.dumps({**FACTS, **facts}))
    (path / "crawl.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    if finished is not None:
        (path / "stats.json").write_text(json.dumps({"finish_reason": finished}))
    return path


def rows(report: Report, name: str) -> list[dict[str, Any]]:
    """The rows of a table of a report that was not written."""
    (found,) = [section for section in report.sections if isinstance(section, Table) and section.id == name]
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def evaluated(
    place: Path, *runs: Path, wanted: Wanted | None = None, settings: Mapping[str, str] | None = None
) -> Report:
    """What the command would write, computed in this process; its cache is below a folder."""
    from crawl4llm.tools.evaluate.evaluate import Wanted, evaluate  # what needs an extra

    given = Settings({"SCORING_WORKERS": 1, "PROGRESS_BAR": "off"})
    given.setdict(settings or {}, priority="cmdline")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        return evaluate(given, runs, wanted or Wanted())


def table(report: Path, name: str) -> list[dict[str, str]]:
    """The rows of a table, or the points of a figure, of a report on disk."""
    with (report / "data" / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class ConstantScorer:
    """Finds all pages equally bad."""

    digest = "5" * 64

    @classmethod
    def from_options(cls, options: ScoringOptions) -> ConstantScorer:
        return cls()

    def score(self, texts: Sequence[str]) -> list[float]:
        return [0.0] * len(texts)
