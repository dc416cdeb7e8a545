"""``--json``: one object on standard output, and nothing else, of every command that prints tables.

tests/commands/test_evaluate_command.py has that of an evaluation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import Web, crawl_log, error_of, scrapy
from evaluation_helpers import write_run
from finished_runs import FinishedRuns


@pytest.fixture(scope="module")
def folder(finished_runs: FinishedRuns, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a paused crawl, ``run``, and its JOBDIR, ``job``."""
    folder = tmp_path_factory.mktemp("json")
    finished_runs.copy("paused", folder)
    return folder


def told(*args: object, cwd: Path, status: int = 0) -> dict[str, Any]:
    env = {"SCRAPY_SETTINGS_MODULE": "settings.simulation"}
    result = scrapy(*map(str, args), "--json", "-s", "SCORING_WORKERS=1", cwd=cwd, env=env)
    assert result.returncode == status, result.stderr
    assert result.stdout.count("\n") == 1
    content: dict[str, Any] = json.loads(result.stdout)
    if status:
        assert error_of(result) == content["error"]
    return content


def test_commands_about_a_crawl(folder: Path, demo_web: Web) -> None:
    log, corpus = crawl_log(folder / "run"), ("-s", f"CORPUS={demo_web.corpus}")
    first = log[0]["id"]
    assert [one["id"] for one in told("corpus", "sample", "--n", 3, *corpus, cwd=folder)["documents"]]
    shown = told("corpus", "show", first, *corpus, cwd=folder)
    assert (shown["id"], shown["url"]) == (first, log[0]["url"])
    assert shown["outlinks"][0].keys() == {"held", "id", "url", "anchor"}
    explained = told("explain", first, "--run", folder / "run", cwd=folder)
    assert explained["crawled"] == {name: log[0][name] for name in ("order", "iteration", "priority")}
    assert explained["text"] == shown["text"]
    frontier = told("frontier", folder / "job", "--hosts", 100, cwd=folder)
    assert (frontier["archived"], frontier["queued"]) == (60, sum(host["queued"] for host in frontier["hosts"]))
    assert [document["score"] for document in frontier["best"]] == sorted(
        (document["score"] for document in frontier["best"]), reverse=True
    )
    for path in ("job", "run"):
        report = told("report", folder / path, cwd=folder)
        assert (report["simulation"], "refused_in_all" in report) == (str(demo_web.corpus), True)
    assert told("frontier", folder / "job", "--verify", cwd=folder)["sound"] is True
    assert told("archive", "check", folder / "run", "--jobs", 1, cwd=folder)["documents"] == 60
    exported = told("export", folder / "run", "--out", folder / "exported", cwd=folder)
    assert exported["documents"] == json.loads((folder / "exported/manifest.json").read_text())["documents"]


def test_an_error_is_part_of_it(folder: Path, tmp_path: Path) -> None:
    assert "error" in told("explain", "x", "--run", tmp_path, cwd=folder, status=1)
    index = folder / "run/warc/index.cdxj"
    whole = index.read_bytes()
    index.write_bytes(whole.partition(b"\n")[2])
    found = told("archive", "check", folder / "run", "--jobs", 1, cwd=folder, status=1)
    index.write_bytes(whole)
    assert found["problems"]
    assert found["problems"][0].keys() == {"file", "place", "what"}


def test_runs_that_do_not_fit_together(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra evaluation")
    runs = [write_run(tmp_path / name, [], scorer=name) for name in ("one", "two")]
    found = told("evaluate", *runs, "--out", tmp_path / "report", cwd=tmp_path, status=1)
    assert "cannot be compared: scorer is one in one, two in the other" in found["error"]
