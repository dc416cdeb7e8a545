"""What comes out of data steers no terminal, and is no formula in a spreadsheet. Streams may be closed or full."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, Web, crawl, crawl_args, python, scrapy, stats

from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import complain, guard_log, harmless, print_lines
from crawl4llm.tools.evaluate.figures import Figure, Series, Table

BIDI = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
MARKS = "\u061c\u200e\u200f"
"""The rest of what Unicode gives the property Bidi_Control."""
HOSTILE = "=evil\x1b[2J\x9b1m\u202ecilop\x07"
CLEAN = "=evil\ufffd[2J\ufffd1m\ufffdcilop\ufffd"


def test_harmless() -> None:
    """All controls but tab and line feed, all bidirectional controls, and no letter of any script."""
    for character in map(chr, range(sys.maxunicode + 1)):
        control = unicodedata.category(character) == "Cc" and character not in "\t\n"
        steers = control or unicodedata.bidirectional(character) in BIDI or character in MARKS
        if steers:
            assert harmless(f"a{character}b") == "a\ufffdb", hex(ord(character))
        elif unicodedata.category(character)[0] in "LMNPS":
            assert harmless(character) == character, hex(ord(character))


def test_lines_and_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def lines() -> Iterator[str]:
        yield f"page {HOSTILE}\n\tשלם سلام"
        raise InputError(f"{HOSTILE} cannot be read:\ncrawl4llm: all is well")

    assert print_lines(lines()) == 1
    printed = capsys.readouterr()
    assert printed.out == f"page {CLEAN}\n\tשלם سلام\n"
    assert printed.err == f"crawl4llm: error: {CLEAN} cannot be read: crawl4llm: all is well\n"
    complain(OSError(2, HOSTILE))
    assert "\x1b" not in capsys.readouterr().err


_SWALLOWED = """\
import signal, sys
from crawl4llm.base.terminal import print_lines

def lines():
    yield "begun"
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pass
    raise TypeError("expected str, bytes or os.PathLike object, not BufferedReader")

sys.exit(print_lines(lines(), goes_on=True))
"""


def test_ctrl_c_that_a_library_turns_into_an_error() -> None:
    """As numpy.fromfile() does if it comes while it looks at its argument."""
    done = python("-c", _SWALLOWED)
    assert (done.returncode, done.stdout) == (130, "begun\n")
    assert done.stderr == "crawl4llm: interrupted; the same command goes on\n"


def crawled_to(streams: str, web: Web, run: Path) -> subprocess.CompletedProcess[str]:
    """A small crawl whose shell changes its standard streams."""
    args = crawl_args(web, run, CRAWL_MAX_PAGES=5, CRAWL_SEEDS=5, SCORING_WORKERS=1)
    command = ["sh", "-c", f'exec "$0" -m scrapy "$@" {streams}', sys.executable, *args]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert len((run / "crawl.jsonl").read_text().splitlines()) == 5
    assert stats(run)["pages/crawled"] == 5
    return done


@pytest.mark.parametrize(("streams", "output"), [(">&-", ""), ("2>&-", "Crawled 5 of 5"), ("<&- >&- 2>&-", "")])
def test_closed_streams(demo_web: Web, tmp_path: Path, streams: str, output: str) -> None:
    """As some daemons and containers start their commands."""
    done = crawled_to(streams, demo_web, tmp_path / "run")
    assert (done.returncode, done.stdout[:14], "Traceback" in done.stderr) == (0, output, False)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_output_that_takes_no_more(demo_web: Web, tmp_path: Path) -> None:
    """A full disk: the crawl is whole, and the command tells that its summary is not."""
    done = crawled_to("> /dev/full", demo_web, tmp_path / "run")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert done.stderr.endswith("crawl4llm: error: standard output cannot be written: No space left on device\n")


def test_log_lines() -> None:
    """Arguments, and tracebacks, through whatever handler."""
    before, logger, stream = logging.getLogRecordFactory(), logging.getLogger("test_terminal"), io.StringIO()
    handler = logging.StreamHandler(stream)
    logger.addHandler(handler)
    try:
        guard_log()
        logger.warning("Left out: %s", HOSTILE)
        try:
            int(HOSTILE + "\x1b")
        except ValueError as error:
            error.args = (HOSTILE,)
            logger.exception("Cannot rate %s", HOSTILE)
    finally:
        logging.setLogRecordFactory(before)
        logger.removeHandler(handler)
    assert stream.getvalue().startswith(f"Left out: {CLEAN}\nCannot rate {CLEAN}\nTraceback")
    assert stream.getvalue().endswith(f"ValueError: {CLEAN}\n")


def test_summary_and_explain_of_a_run_beside_a_received_one(demo_web: Web, tmp_path: Path) -> None:
    settings = {"CRAWL_MAX_PAGES": 10, "CRAWL_SEEDS": 10, "WARC_ENABLED": 0, "JOBDIR": tmp_path / "job"}
    assert crawl(demo_web, tmp_path / "run", **settings).returncode == 0
    received = tmp_path / "received\x1b[2J"
    shutil.copytree(tmp_path / "run", received)
    facts = json.loads((received / "settings.json").read_text())
    (received / "settings.json").write_text(json.dumps({**facts, "policy": "random"}))
    damaged = shutil.copytree(received, tmp_path / "damaged")
    (damaged / "settings.json").write_text(json.dumps({**facts, "policy": HOSTILE}))
    log = received / "crawl.jsonl"
    last = json.loads(log.read_text().splitlines()[-1])["id"]
    log.write_text(log.read_text().replace(last, f"{last}9"))  # runs of the same pages are not compared
    again = crawl(demo_web, tmp_path / "run", **settings)
    assert "times that of random (" in again.stdout
    key = json.loads(log.read_text().splitlines()[0])["id"]
    explained = scrapy("explain", key, "--run", str(received))
    assert ": policy random, 10 pages" in explained.stdout
    refused = scrapy("explain", key, "--run", str(damaged))
    assert "settings.json is damaged: its policy is" in refused.stderr
    for result in (again, explained, refused):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", result.stdout + result.stderr)


def cells(section: Figure | Table) -> list[list[str]]:
    return list(csv.reader(io.StringIO(section.csv())))


def test_csv_cells_are_no_formulas() -> None:
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1+1", "\r=1+1", " =1+1", "\uff1d1+1", "\u202e=1+1", "a=1", "", "5"]
    taken = ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1+1", "\ufffd=1+1", "' =1+1", "'\uff1d1+1", "\ufffd=1+1"]
    table = Table("t", "", "", ["=name", "value"], [[text, -0.5] for text in texts])
    assert cells(table) == [["'=name", "value"], *([text, "-0.5"] for text in [*taken, "a=1", "", "5"])]
    figure = Figure("f", "", "", "", "", [Series(HOSTILE, [-1, 2], [-1.5e-9, None])])
    assert cells(figure)[1:] == [[f"'{CLEAN}", "-1", "-1.5e-09", "", ""], [f"'{CLEAN}", "2", "", "", ""]]
