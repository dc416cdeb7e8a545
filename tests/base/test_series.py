"""The series of a crawl: thinned, readable at any moment, and taken up after a kill."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from crawl4llm.base import series
from crawl4llm.base.errors import InputError
from crawl4llm.base.files import PreadFile
from crawl4llm.base.series import FIELDS, MOST, Scores, SeriesFile, read_series

HEAD = '{"format": 1}\n'


def point(crawled: int) -> dict[str, Any]:
    return {**dict.fromkeys(FIELDS, 0), "crawled": crawled, "best": []}


def test_points_are_thinned_and_the_last_is_always_there(tmp_path: Path) -> None:
    file = SeriesFile(tmp_path, 0)
    for number in range(1, 3 * MOST + 2):
        file.add(point(number))
        if number % 997 == 0 or number in {MOST, MOST + 1}:
            crawled = [one["crawled"] for one in read_series(tmp_path) or []]
            assert len(crawled) <= MOST
            assert crawled[-1] == number
            assert crawled == sorted(set(crawled))
    file.close()
    assert len(crawled) > MOST / 2


def test_a_killed_crawl_goes_on_after_its_last_commit(tmp_path: Path) -> None:
    file = SeriesFile(tmp_path, 0)
    for crawled in (10, 20, 30, 40):
        file.add(point(crawled))
    file.close()
    with (tmp_path / series.NAME).open("ab") as torn:
        torn.write(b'{"crawled": 50, "vis')
    assert [one["crawled"] for one in read_series(tmp_path) or []] == [10, 20, 30, 40]

    again = SeriesFile(tmp_path, 30)
    assert again.last == point(30)
    again.add(point(31))
    again.close()
    assert [one["crawled"] for one in read_series(tmp_path) or []] == [10, 20, 30, 31]


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"format": 2}\n', "has format 2"),
        (HEAD + "[1]\n", "is damaged"),
        (HEAD + '{"crawled": 1}\n', "is damaged"),
        (
            HEAD + json.dumps({**dict.fromkeys(FIELDS, 0), "best": [[1]]}) + "\n",
            "is damaged",
        ),
        (HEAD + json.dumps({**dict.fromkeys(FIELDS), "best": []}) + "\n", "is damaged"),
        ("[" * 100_000 + "\n", "is damaged"),
        ("\0\0\n", "is damaged"),
    ],
    ids=["newer", "no object", "fields missing", "no pairs", "no numbers", "deep", "no JSON"],
)
def test_what_is_no_series_is_said_and_begun_anew_by_a_crawl(tmp_path: Path, content: str, fault: str) -> None:
    (tmp_path / series.NAME).write_text(content)
    with pytest.raises(InputError, match=fault):
        read_series(tmp_path)
    SeriesFile(tmp_path, 5).close()
    assert read_series(tmp_path) == []


def test_scores_are_those_of_the_lines_whatever_urls_say(tmp_path: Path) -> None:
    names = ['http://a/", "influence": 9, "', "http://a/\n", 'x"influence": 7,', "ü", '\\", "influence": 8']
    lines = [
        {"order": place, "id": names[place % 5], "url": names[place % 3], "influence": score, "depth": 0}
        for place, score in enumerate([0.25, None, 1e-7, 0.75, -2.5, 0.5, 3, 1.0, 0.125, 0.0, 0.9, 0.8, 0.7, 0.6])
    ]
    log = tmp_path / "crawl.jsonl"
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"influence": 99')
    scores = Scores(0.5)
    while scores.read(PreadFile(log), most=200):
        pass
    expected = [line["influence"] for line in lines if line["influence"] is not None]
    found = scores.point()
    assert (found["scored"], found["influence"]) == (len(expected), pytest.approx(sum(expected)))
    assert found["good"] == sum(score >= 0.5 for score in expected)
    at = [json.loads(log.read_bytes()[offset:].split(b"\n")[0])["influence"] for _, offset in found["best"]]
    assert at == [score for score, _ in found["best"]] == sorted(expected, reverse=True)[:10]

    half = Scores(0.5)
    half.read(PreadFile(log), most=700)
    resumed = Scores(0.5, json.loads(json.dumps(half.point())))
    while resumed.read(PreadFile(log)):
        pass
    assert resumed.point() == found
