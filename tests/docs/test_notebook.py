"""The notebook of the documentation runs, on a smaller web than the one that it shows."""

from __future__ import annotations

import json
import linecache
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, Web
from docs_helpers import make_project

NOTEBOOK = PROJECT / "docs/notebooks/policy.ipynb"


def test_every_cell_was_run_in_order() -> None:
    code = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not [output for cell in code for output in cell["outputs"] if output["output_type"] == "error"]


def test_cells_run(small_demo_web: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a notebook: one name space called ``__main__``, and sources that ``linecache`` knows."""
    pytest.importorskip("pandas")
    make_project(tmp_path / "project", small_demo_web)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.syspath_prepend(str(PROJECT))
    names: dict[str, object] = {"__name__": "__main__"}
    for number, cell in enumerate(json.loads(NOTEBOOK.read_text())["cells"]):
        if cell["cell_type"] == "code":
            source, place = "".join(cell["source"]), f"<cell {number}>"
            linecache.cache[place] = len(source), None, source.splitlines(keepends=True), place
            exec(compile(source, place, "exec"), names)
    assert sorted(path.name for path in Path("crawls").iterdir()) == ["0001", "0002", "0003"]
