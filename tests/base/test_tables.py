"""What commands print: aligned for people, one object for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import pytest

from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Line, Part, Rows, facts, json_lines, text_lines

PARTS = [
    Fact("size", 1234567),
    Fact("not known", None),
    *facts({"injected before": 3, "new": 1000}),
    Line("1,234,567 bytes"),
    "",
    Rows(
        "hosts",
        ("host", "mean_delay", "pages"),
        [("a.example", 2.5, 1200), ("b\nc", None, 7)],
        "Hosts",
        ("all", 1.0, 9),
    ),
    "Next: go on",
]


def test_lines_are_aligned() -> None:
    assert list(text_lines(PARTS)) == [
        "size       1,234,567",
        "not known  -",
        "injected before  3",
        "new              1,000",
        "1,234,567 bytes",
        "",
        "Hosts",
        "host       mean delay  pages",
        "a.example       2.500  1,200",
        "b c                 -      7",
        "all             1.000      9",
        "Next: go on",
    ]


def test_json_is_one_object() -> None:
    (line,) = json_lines([*PARTS, Fact("size", 2), Fact("size", [3])])
    assert json.loads(line) == {
        "size": [1234567, 2, [3]],
        "not_known": None,
        "injected_before": 3,
        "new": 1000,
        "hosts": [
            {"host": "a.example", "mean_delay": 2.5, "pages": 1200},
            {"host": "b\nc", "mean_delay": None, "pages": 7},
        ],
        "hosts_in_all": {"mean_delay": 1.0, "pages": 9},
        "notes": ["Next: go on"],
    }


def test_numbers_that_json_lacks_are_null() -> None:
    (line,) = json_lines([Fact("score", math.nan), Rows("best", ("score", "id"), [(-math.inf, "NaN"), (0.5, "b")])])
    assert line == '{"score": null, "best": [{"score": null, "id": "NaN"}, {"score": 0.5, "id": "b"}]}'


def test_what_came_before_an_error_is_printed_with_it() -> None:
    def parts() -> Iterator[Part]:
        yield Fact("pages", 3)
        raise InputError("DIR: 2 problems")

    lines = json_lines(parts())
    assert json.loads(next(lines)) == {"pages": 3, "error": "DIR: 2 problems"}
    with pytest.raises(InputError):
        next(lines)


def test_an_empty_table_is_a_list_for_programs_only() -> None:
    table = Rows("hosts", ("host",), [], "Hosts")
    assert list(text_lines([table])) == []
    assert list(json_lines([table])) == ['{"hosts": []}']
