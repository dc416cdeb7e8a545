"""``scrapy corpus`` as users run it: real processes in a Scrapy project of their own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from clueweb22_helpers import (
    html_record,
    key_of,
    link,
    link_record,
    member,
    paths,
    text_record,
    url_of,
    write_file,
    write_tree,
)
from crawl_helpers import begin, scrapy
from scrapy.cmdline import execute
from scrapy.settings import Settings

PROJECT = Path(__file__).resolve().parents[2]
KEY = key_of("en0000-00", 0)
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}


class Project:
    """A Scrapy project beside a small tree."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        self.folder.mkdir()
        self.tree = write_tree(folder / "tree")
        (self.folder / "scrapy.cfg").write_text("[settings]\ndefault = settings_of_test\n")
        (self.folder / "settings_of_test.py").write_text(
            f'BOT_NAME = "test"\nCOMMANDS_MODULE = "crawl4llm.commands"\nCORPUS = "{self.tree}"\n'
        )

    def corpus(self, *args: str) -> subprocess.CompletedProcess[str]:
        return scrapy("corpus", *args, cwd=self.folder)

    def status_here(self, *args: str) -> object:
        """Exit status of a command that is run in this process, which saves Scrapy's start-up."""
        settings = Settings({"COMMANDS_MODULE": "crawl4llm.commands", "CORPUS": str(self.tree)})
        with pytest.raises(SystemExit) as raised:
            execute(["scrapy", "corpus", *args], settings)
        return raised.value.code

    def output(self, *args: str) -> str:
        """Standard output of a command that succeeds, without a word on standard error."""
        done = self.corpus(*args)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def error(self, *args: str) -> str:
        """The one line of a command that fails."""
        done = self.corpus(*args)
        assert done.returncode == 1
        assert done.stderr.startswith("crawl4llm: error: ")
        assert done.stderr.count("\n") == 1
        return done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_show_an_id(project: Project) -> None:
    assert (
        project.output("show", KEY)
        == f"""\
id         {KEY}
url        {url_of(KEY)}
date       2022-08-15T10:20:30Z
language   en
html       {len(f"<p>Page {KEY}</p>")} bytes
text       {len(f"Text of {KEY}.")} characters
inlinks    1

Text of {KEY}.

outlinks   3, 1 of them held by the corpus
+ {key_of("en0000-00", 1)}  {url_of(key_of("en0000-00", 1))}  anchor
- no id  https://else.example/  anchor
- clueweb22-en0079-99-00000  {url_of("clueweb22-en0079-99-00000")}  anchor
"""
    )


def test_show_what_is_held_of_a_document(project: Project) -> None:
    shutil.rmtree(project.tree / "outlink")
    shutil.rmtree(project.tree / "txt")
    lines = project.output("show", KEY).splitlines()
    assert lines[-3:] == ["text       -", "inlinks    1", "outlinks   -"]


def test_show_keeps_a_page_from_steering_the_terminal(project: Project) -> None:
    write_file(
        project.tree, "txt", "en0000-00", [member(text_record(KEY, text="one\x1b[2Jtwo\r\x9b\tthree\nfour\u202eevif"))]
    )
    links = [link(None, anchor="a\nb\x1b]0;c\x07")]
    write_file(project.tree, "outlink", "en0000-00", [member(link_record(KEY, links))])
    output = project.output("show", KEY)
    assert "one\ufffd[2Jtwo\ufffd\ufffd\tthree\nfour\ufffdevif" in output
    assert "a b\ufffd]0;c\ufffd\n" in output


def test_show_a_url_through_the_index(project: Project) -> None:
    assert "index.json: there is no URL index" in project.error("show", url_of(KEY))
    lines = project.output("index", "--jobs", "2").splitlines()
    assert lines[:4] == [
        "documents   6",
        "duplicates  0 (of one URL, the document with the smallest key is found)",
        "unreadable  0",
        "files       2 read, 0 unchanged since an earlier run",
    ]
    assert lines[4].startswith(f"index       {project.folder / '.scrapy' / 'corpora' / 'tree-'}")
    assert f"id         {KEY}\n" in project.output("show", url_of(KEY).replace("https", "http") + "/")
    assert "no document at https://nowhere.example/" in project.error("show", "https://nowhere.example/")
    assert "0 read, 2 unchanged" in project.output("index")


def test_an_index_from_before_the_corpus_changed(project: Project) -> None:
    project.output("index")
    write_file(project.tree, "html", "en0000-00", [member(html_record(KEY))])
    assert "scrapy corpus index -s CORPUS=" in project.error("show", url_of(KEY))
    assert "1 read, 1 unchanged" in project.output("index")


def test_sample(project: Project) -> None:
    drawn = project.output("sample", "--n", "4", "--seed", "1").splitlines()
    assert len(set(drawn)) == 4
    assert drawn == project.output("sample", "--seed", "1", "--n", "4").splitlines()
    every = [key_of(file_id, record) for file_id in ("de0001-02", "en0000-00") for record in range(3)]
    assert sorted(project.output("sample", "--n", "6").splitlines()) == every


def test_the_settings_choose_how_links_are_read(project: Project) -> None:
    output = project.output("show", KEY, "-s", "CLUEWEB22_TARGET_PREFIX=clueweb22-de")
    assert output.count("- no id") == 3
    slim = {"ClueWeb22-ID": KEY, "outlinks": [[key_of("de0001-02", 2)]]}
    write_file(project.tree, "outlink", "en0000-00", [member(json.dumps(slim))])
    output = project.output("show", KEY)
    assert f"outlinks   1, 1 of them held by the corpus\n+ {key_of('de0001-02', 2)}\n" in output


def cut_offsets(project: Project) -> str:
    _, offsets = paths(project.tree, "txt", "en0000-00")
    offsets.write_bytes(offsets.read_bytes()[:-4])
    return f"{offsets}: is cut short"


def damaged_record(project: Project) -> str:
    write_file(project.tree, "txt", "en0000-00", [b"damaged"])
    return f"{paths(project.tree, 'txt', 'en0000-00')[0]}: record {KEY}: "


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["show", "clueweb22-en0000-00-00009"], "does not hold clueweb22-en0000-00-00009"),
        (["show", KEY + "0"], f"holds no document at {KEY}0; did you mean {KEY}?\n"),
        (["show", KEY.upper()], f"holds no document at {KEY.upper()}; ids look like clueweb22-de0001-02-00000\n"),
        (["sample"], "holds 6 documents; 100 cannot be drawn"),
        (["sample", "-s", "CORPUS=/no/such/tree"], "CORPUS /no/such/tree: no such file or folder"),
        (["index", "-s", "CORPUS="], "CORPUS"),
        (["show", KEY, "-s", "CORPUS=settings_of_test.py"], "settings_of_test.py, line 1: no such file"),
        (["show", KEY, "-s", "CORPUS=."], "CORPUS .: holds neither a ClueWeb22 tree"),
        (
            ["show", KEY, "-s", "CLUEWEB22_LINK_ID_POSITION=0"],
            "setting CLUEWEB22_LINK_ID_POSITION was removed: ",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_line(
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    args: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(project.folder)
    assert project.status_here(*args) == 1
    errors = capsys.readouterr().err
    assert errors.startswith("crawl4llm: error: ")
    assert words in errors
    assert errors.count("\n") == 1


def test_damage_is_one_line(project: Project) -> None:
    expected = cut_offsets(project)
    assert expected in project.error("sample", "--n", "1")
    expected = damaged_record(project)
    assert expected in project.error("show", KEY)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ([], "give an action: one of show, sample, "),
        (["dance"], "dance is not known; give an action: one of show, sample, "),
        (["sampel"], "sampel is not known (did you mean sample?); give an action: one of show, sample, "),
        (["show"], "usage: scrapy corpus show ID-or-URL"),
        (["show", KEY, KEY], "usage: scrapy corpus show ID-or-URL"),
        (["sample", "5"], "usage: scrapy corpus sample"),
        (["sample", "--number", "5"], "unknown option --number"),
        (["sample", "--n", "0"], "argument -n/--n: '0' is not a positive integer"),
        (["index", "--jobs", "many"], "argument --jobs: 'many' is not a positive integer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(project: Project, capsys: pytest.CaptureFixture[str], args: list[str], words: str) -> None:
    assert project.status_here(*args) == 2
    assert words in capsys.readouterr().err


def test_help_names_every_action(project: Project) -> None:
    output = project.output("-h")
    for words in ("scrapy corpus show ID-or-URL", "scrapy corpus sample", "scrapy corpus index", "--seed", "--jobs"):
        assert words in output


def test_a_reader_that_has_enough_is_no_error_to_report(project: Project) -> None:
    write_file(project.tree, "txt", "en0000-01", [member(b"\n")] * 9000)
    process = begin(["corpus", "sample", "--n", "9000"], cwd=project.folder)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("clueweb22-")
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(timeout=600) == 1
    process.stderr.close()


def test_index_interrupted_by_ctrl_c(project: Project) -> None:
    for number in range(1, 40):
        keys = [key_of(f"en0000-{number:02d}", record) for record in range(500)]
        write_file(project.tree, "txt", f"en0000-{number:02d}", [member(text_record(key)) for key in keys])
    process = begin(["corpus", "index", "--jobs", "2"], cwd=project.folder, silent=["out"])
    deadline = time.monotonic() + 600
    while len(list(project.folder.glob(".scrapy/corpora/*/parts/*"))) < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=600)
    assert errors == "crawl4llm: interrupted\n"
    assert process.returncode == 130
    kept = len(list(project.folder.glob(".scrapy/corpora/*/parts/*")))
    assert f"{41 - kept} read, {kept} unchanged" in project.output("index")
