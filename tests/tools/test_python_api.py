"""The public Python API: a crawl made by ``simulate``, read by ``open_run``."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, Web, crawl_log
from terminal_helpers import on_a_terminal

import crawl4llm
from crawl4llm import InputError, OpenedRun, PageError, open_run, simulate
from simulate.clueweb22.corpus import ClueWeb22Corpus

pytest.importorskip("pyarrow", reason="needs the extra parquet")

SMALL = {"CRAWL_MAX_PAGES": 120, "CRAWL_BATCH_SIZE": 20, "CRAWL_SEEDS": 20, "SCORING_WORKERS": 0, "SCORE_CACHE": ""}
POLICY = '''
import time
from crawl4llm import simulate
from crawl4llm.policies import BasePolicy, Rating

PAUSE = 0.1


class Slow(BasePolicy):
    """Shallow documents first, and slowly."""

    name = "slow"

    async def score(self, candidates):
        time.sleep(PAUSE)
        return [Rating(-candidate.depth) for candidate in candidates]
'''
SCRIPT = (
    POLICY
    + """
import json, sys

corpus, out, settings = sys.argv[1:]
try:
    simulate(Slow, corpus, out=out, **json.loads(settings))
except KeyboardInterrupt:
    print("stopped")
"""
)


@pytest.fixture(autouse=True)
def in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(PROJECT)


@pytest.fixture(scope="module")
def run(demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> OpenedRun:
    """A crawl made as a notebook makes one: while an event loop runs."""
    folder = tmp_path_factory.mktemp("api")

    async def cell() -> OpenedRun:
        given = {**SMALL, "SCORER_MODEL": demo_web.model, "WARC_TEXT": True, "JOBDIR": folder / "job"}
        return simulate("indegree", demo_web.corpus, out=folder / "run", **given)

    before = Path.cwd()
    os.chdir(PROJECT)
    try:
        return asyncio.run(cell())
    finally:
        os.chdir(before)


def test_exported_names() -> None:
    names = ["InputError", "OpenedRun", "Page", "PageError", "__version__", "open_run", "simulate"]
    assert crawl4llm.__all__ == names
    assert all(getattr(crawl4llm, name) for name in names)
    with pytest.raises(AttributeError, match="has no attribute 'crawl_all'"):
        _ = crawl4llm.crawl_all  # type: ignore[attr-defined]


def test_importing_them_costs_little() -> None:
    heavy = ["scrapy", "twisted", "numpy", "pyarrow", "pandas", "lxml", "lmdb", "fasttext"]
    code = f"import sys; from crawl4llm import open_run, simulate; print({set(heavy)} & sys.modules.keys())"
    found = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


def test_tables_are_the_log(run: OpenedRun) -> None:
    log = crawl_log(run.path)
    table = run.crawl_log()
    assert table.num_rows == len(log) == 120
    for name, values in table.to_pydict().items():
        assert values == [line.get(name) for line in log], name
    frame = run.crawl_log("pandas")
    assert frame.influence.mean() == pytest.approx(sum(line["influence"] for line in log) / len(log))
    assert run.failures().column_names[:4] == ["id", "url", "outcome", "reason"]
    assert (run.finish_reason, run.settings["policy"]) == ("max_pages", "indegree")
    assert repr(run) == f"<crawl {run.path}: indegree, max_pages>"


def test_pages_with_text_and_links(run: OpenedRun, demo_web: Web) -> None:
    corpus = ClueWeb22Corpus(demo_web.corpus)
    pages = list(run.pages())
    assert [(page.id, page.influence) for page in pages] == [
        (line["id"], line["influence"]) for line in crawl_log(run.path)
    ]
    for page in pages[::20]:
        assert page.text == corpus.text(page.id)
        assert page.html == corpus.html(page.id)
        assert {link.url for link in corpus.outlinks(page.id)} <= {link.url for link in page.links}
    assert run.page(pages[7].url).id == run.page(pages[7].id).id == pages[7].id
    with pytest.raises(InputError, match=r"^nothing is no page of "):
        run.page("nothing")


def test_jobdir_leads_to_the_crawl(run: OpenedRun) -> None:
    assert open_run(run.path.parent / "job").path == run.path
    (run.path.parent / "job" / "job.json").rename(run.path.parent / "kept")
    try:
        with pytest.raises(InputError, match=r"job is no crawl; give its output directory"):
            open_run(run.path.parent / "job")
    finally:
        (run.path.parent / "kept").rename(run.path.parent / "job" / "job.json")


def test_what_is_being_written_ends_at_its_last_whole_line(run: OpenedRun, tmp_path: Path) -> None:
    copy = OpenedRun(Path(shutil.copytree(run.path, tmp_path / "run")))
    for name in ("crawl.jsonl", "warc/index.cdxj", "warc/text.cdxj"):
        path = copy.path / name
        path.write_bytes(path.read_bytes()[:-30])
    (copy.path / "stats.json").unlink()
    assert copy.crawl_log().num_rows == len(list(copy.pages())) == 119
    assert copy.finish_reason is None
    (copy.path / "crawl.jsonl").write_bytes(b"")
    assert copy.crawl_log().num_rows == 0
    (copy.path / "warc/text.cdxj").unlink()
    page = next(copy.pages())
    assert page.influence is None
    assert len(page.text) > 100  # extracted


@pytest.mark.parametrize(
    "line", [b'{"order": "first"}\n', b"no JSON\n", b"[" * 200_000 + b"\n", b"\xff\xfe\n", b'{"order": 1e99}\n']
)
def test_damaged_log_is_told_in_a_line(run: OpenedRun, tmp_path: Path, line: bytes) -> None:
    (tmp_path / "crawl.jsonl").write_bytes((run.path / "crawl.jsonl").read_bytes() + line)
    with pytest.raises(InputError, match=r"crawl\.jsonl is damaged: .*") as told:
        open_run(tmp_path).crawl_log()
    assert "\n" not in str(told.value)


def test_damaged_page_harms_no_other(run: OpenedRun, tmp_path: Path) -> None:
    copy = OpenedRun(Path(shutil.copytree(run.path, tmp_path / "run")))
    index = (copy.path / "warc/index.cdxj").read_text().splitlines(keepends=True)
    place = json.loads(index[3].split(" ", 2)[2])
    with (copy.path / "warc" / place["filename"]).open("r+b") as file:
        file.seek(int(place["offset"]) + 40)
        file.write(b"damage")
    pages = list(copy.pages())
    with pytest.raises(PageError):
        _ = pages[3].html
    assert pages[4].html


def test_missing_library_and_archive(run: OpenedRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(InputError, match=r"^tables need pandas; pip install "):
        run.crawl_log("pandas")
    shutil.copy(run.path / "crawl.jsonl", tmp_path)
    with pytest.raises(InputError, match=r"has no archive \(warc/index\.cdxj\)"):
        next(open_run(tmp_path).pages())


def test_a_form_that_there_is_not(run: OpenedRun) -> None:
    with pytest.raises(InputError, match="'csv' is no form of a table; known are: arrow, pandas, dicts"):
        run.failures("csv")  # type: ignore[arg-type]


def test_policy_of_a_file(demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose name is that of a module of Python's; in a folder of no project."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "random.py").write_text(POLICY.replace("class Slow", "class Policy").replace("0.1", "0"))
    given = {**SMALL, "SCORER_MODEL": demo_web.model, "CRAWL_MAX_PAGES": 40}
    made = simulate(tmp_path / "random.py", demo_web.corpus, out=tmp_path / "run", **given)
    assert (made.settings["policy"], made.crawl_log().num_rows) == ("slow", 40)


@pytest.mark.parametrize(
    ("policy", "settings", "told"),
    [
        ("nothing.py", {}, r"^policy nothing\.py cannot be read: "),
        ("nothing", {}, r"^URL_POLICY = 'nothing' is not known"),
        ("random", {"CRAWL_MAX_PAGE": 3}, r"CRAWL_MAX_PAGE is not known; did you mean CRAWL_MAX_PAGES"),
    ],
)
def test_bad_input(tmp_path: Path, policy: str, settings: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        simulate(policy, out=tmp_path / "run", **settings)
    assert not (tmp_path / "run").exists()


def test_ctrl_c_stops_the_crawl_and_leaves_it_whole(demo_web: Web, tmp_path: Path) -> None:
    """In a script whose policy is its own class; the crawl is read while it is written."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    given = json.dumps({**SMALL, "CRAWL_MAX_PAGES": 1000, "SCORER_MODEL": str(demo_web.model)})
    command = [sys.executable, script, demo_web.corpus, tmp_path / "run", given]
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    process = subprocess.Popen(command, cwd=PROJECT, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        log = tmp_path / "run" / "crawl.jsonl"
        while not (log.exists() and log.read_bytes().count(b"\n") >= 40):
            assert process.poll() is None
            time.sleep(0.05)
        assert open_run(tmp_path / "run").crawl_log().num_rows >= 40
        os.killpg(process.pid, signal.SIGINT)
        assert process.communicate(timeout=600)[0] == "stopped\n"
    finally:
        process.kill()
    stopped = open_run(tmp_path / "run")
    assert stopped.finish_reason == "shutdown"
    assert 40 <= stopped.crawl_log().num_rows < 1000
    assert len(list(stopped.pages())) == stopped.crawl_log().num_rows


WITHOUT_TABLES = """
import sys
sys.modules["pyarrow"] = sys.modules["pandas"] = None
from crawl4llm import simulate
corpus, out, model = sys.argv[1:]
run = simulate("random", corpus, out=out, SCORER_MODEL=model, CRAWL_MAX_PAGES=60, CRAWL_SEEDS=20)
lines = run.crawl_log("dicts")
print(len(lines), len(list(run.pages())), lines[0]["order"], len(run.failures("dicts")))
"""


def test_simulate_shows_how_far_it_is_and_needs_no_tables(demo_web: Web, tmp_path: Path) -> None:
    """On a terminal, in a process in which neither pyarrow nor pandas can be imported."""
    (tmp_path / "script.py").write_text(WITHOUT_TABLES)
    command = [str(tmp_path / "script.py"), str(demo_web.corpus), str(tmp_path / "run"), str(demo_web.model)]
    status, shown, printed = on_a_terminal(command, 80, cwd=tmp_path)
    assert status == 0, shown
    assert re.search(r"simulating: 100%.*\b60/60 \[.*pages/s\]", shown.strip().rpartition("\r")[2]), shown
    assert printed.split()[:3] == ["60", "60", "0"]
