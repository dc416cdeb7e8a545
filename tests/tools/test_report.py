"""The files of a report: numbers as they were given, the same bytes each time, one word where it cannot be written."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crawl_helpers import PROJECT

pytest.importorskip("matplotlib", reason="needs the extra evaluate")
pytest.importorskip("jinja2", reason="needs the extra evaluate")

from report_helpers import FIGURES, HOSTILE, REPORT, RUNS_TABLE

from crawl4llm.base.errors import InputError
from crawl4llm.tools.evaluate.figures import Figure, Report, Series, Table
from crawl4llm.tools.evaluate.report import compare, series_table, shown, write_report

READABLE_NAME = HOSTILE.replace("\x00", "\ufffd").replace("\udc80", "\ufffd")


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The files of the report, written to a folder ``deep/er``."""
    return write_report(REPORT, tmp_path_factory.mktemp("report") / "deep" / "er")


@pytest.fixture(scope="module")
def written(paths: list[Path]) -> Path:
    """The folder of the report."""
    return next(folder for folder in paths[0].parents if folder.name == "er")


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_files(written: Path) -> None:
    ids = [section.id for section in REPORT.sections]
    expected = {"report.html", "report.json"}
    expected |= {f"data/{name}.csv" for name in ids}
    expected |= {f"figures/{figure.id}.{suffix}" for figure in FIGURES for suffix in ("svg", "pdf")}
    assert {str(path.relative_to(written)) for path in written.rglob("*") if path.is_file()} == expected


def test_csv_of_a_figure_has_its_numbers(written: Path) -> None:
    header, *lines = rows(written / "data" / "recall.csv")
    assert header == ["series", "x", "y", "low", "high"]
    assert lines[:8] == [
        ["theoretical bound", "0", "0", "", ""],
        ["theoretical bound", "50", "0.5", "", ""],
        ["theoretical bound", "100", "1", "", ""],
        ["influence", "0", "0", "0", "0"],
        ["influence", "25", "0.3", "0.2", "0.4"],
        ["influence", "50", "", "0", "1"],
        ["influence", "75", "0.6", "0.5", "0.7"],
        ["influence", "100", "0.7", "0.6", "1"],
    ]
    assert lines[8][0] == READABLE_NAME
    assert [lines[-2][0], *map(float, lines[-2][1:3])] == ["of NumPy", 0, pytest.approx(0.05)]
    assert lines[-1] == ["of NumPy", "100", "", "", ""]


def test_csv_of_a_table_has_its_numbers(written: Path) -> None:
    assert rows(written / "data" / "harvest.csv") == [
        list(RUNS_TABLE.columns),
        ["run 10", "6500", "0.2311", ""],
        ["run 9", "21599", "0.30000000000000004", READABLE_NAME],
        [READABLE_NAME, "100", "", "interrupted"],
        ["run 1", "4400", "", "a"],
    ]


def test_json_has_all_that_was_given(written: Path) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    content = json.loads((written / "report.json").read_text(), parse_constant=refuse)
    assert content["title"] == REPORT.title
    assert content["notes"] == list(REPORT.notes)
    assert content["runs"] == list(REPORT.runs)
    recall, harvest = content["sections"][:2]
    assert (recall["type"], recall["x_label"], recall["x_log"]) == ("figure", "pages crawled", False)
    assert recall["series"][1]["y"] == [0, 0.3, None, 0.6, 0.7]
    assert recall["series"][1]["high"] == [0, 0.4, 1, 0.7, 1]
    assert recall["series"][0]["low"] is None
    assert (harvest["type"], harvest["columns"]) == ("table", list(RUNS_TABLE.columns))
    assert harvest["rows"][1][:3] == ["run 9", 21599, 0.1 + 0.2]
    assert harvest["rows"][3] == ["run 1", 4400, None, "a"]


def test_settings_that_json_has_no_number_for() -> None:
    report = Report("title", [], [], [{"name": "run", "settings": {"LONGEST": math.inf, "SHARES": [math.nan, 0.5]}}])
    assert json.loads(report.json())["runs"][0]["settings"] == {"LONGEST": None, "SHARES": [None, 0.5]}


def test_same_bytes_each_time(written: Path, paths: list[Path]) -> None:
    """Another process, another order of hashing, the same report."""
    code = (
        "import sys, hashlib; from pathlib import Path; from report_helpers import REPORT;"
        "from crawl4llm.tools.evaluate.report import write_report;"
        "print([hashlib.sha256(path.read_bytes()).hexdigest() for path in write_report(REPORT, Path(sys.argv[1]))])"
    )
    again = subprocess.run(
        [sys.executable, "-c", code, str(written.with_name("again"))],
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": f"{PROJECT}{os.pathsep}{PROJECT / 'tests/helpers'}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    assert again.stdout.strip() == str([hashlib.sha256(path.read_bytes()).hexdigest() for path in paths])


@pytest.mark.parametrize(
    "sections",
    [
        [Table("../up", "", "", [], [])],
        [Table("", "", "", [], [])],
        [Table("same", "", "", [], []), Table("Same", "", "", [], [])],
    ],
)
def test_what_is_no_report(sections: list[Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="ids of figures and tables name files, each once"):
        write_report(replace(REPORT, sections=sections), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_report_of_nothing(tmp_path: Path) -> None:
    """Over another one."""
    write_report(Report("Something", [], [], []), tmp_path)
    paths = write_report(Report("Nothing", [], [], []), tmp_path)
    assert [path.name for path in paths] == ["report.html", "report.json"]
    assert "Nothing" in paths[0].read_text()


def test_where_it_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"taken.report\.html cannot be written: "):
        write_report(replace(REPORT, sections=[]), tmp_path / "taken")


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_the_extra_is_named_where_it_is_missing(missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(InputError, match=r"needs Matplotlib, Jinja2 and SciPy; pip install '.+'$"):
        write_report(REPORT, tmp_path)


def test_runs_are_compared_key_by_key() -> None:
    names, lines = compare(
        [
            {"name": "a", "b": {"y": 1, "x": {"z": None}}, "a": "s"},
            {"b": {"y": 1.5}, "a": "s"},
        ]
    )
    assert names == ["a", "run 2"]
    assert [(line.key, line.values, line.differs) for line in lines] == [
        ("a", ["s", "s"], False),
        ("b.x.z", ["null", None], True),
        ("b.y", ["1", "1.5"], True),
    ]


def test_series_in_numbers() -> None:
    table = series_table(Figure("f", "", "", "", "", [Series("s", [1, 2, 3], [None, 5, 2]), Series("none", [], [])]))
    assert table.rows == [["s", 2, 5, 2, 2, 5], ["none", 0, None, None, None, None]]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "\u2013"),
        ("1,0", "1,0"),
        (0, "0"),
        (21599, "21,599"),
        (-1234.56, "-1,234.6"),
        (0.4, "0.4"),
    ],
)
def test_values_as_they_are_shown(value: str | float | None, text: str) -> None:
    assert shown(value, 1) == text


def test_numbers_of_a_column_have_as_many_decimals(written: Path) -> None:
    page = (written / "report.html").read_text()
    cells = re.findall(
        r'data-number="0\.[0-9]+">([^<]*)<', page.partition('id="section-harvest"')[2].partition("</section")[0]
    )
    assert cells == ["0.2311", "0.3000"]


def test_a_pdf_is_one(written: Path) -> None:
    assert (written / "figures/recall.pdf").read_bytes().startswith(b"%PDF-1.")
