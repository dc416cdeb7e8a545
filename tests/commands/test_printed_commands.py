"""The commands that the program prints work as they are, in a shell: quoted, complete, and by a program that is there.

Folders have blanks in their names, and ``crawl4llm`` alone is on the path, as pipx and uv put it there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_helpers import PROJECT, TIMEOUT, Web
from forked_programs import forked_programs

from crawl4llm.base.command_lines import command

PYTHON = {"PYTHONPATH": str(PROJECT)}


class Shell:
    """A shell in a folder; the program ``crawl4llm`` is in the only folder of its path that is not the system's."""

    def __init__(self, folder: Path, bin_folder: Path) -> None:
        self.folder = folder
        clean = {name: value for name, value in os.environ.items() if not name.startswith("SCRAPY_")}
        self.env = {**clean, **PYTHON, "PATH": f"{bin_folder}:/usr/bin:/bin"}

    def __call__(self, line: str, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a line."""
        return subprocess.run(
            ["sh", "-c", line],
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )

    def out(self, line: str, **env: str) -> str:
        """What a line prints that goes well."""
        done = self(line, **env)
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def next_of(self, line: str, **env: str) -> str:
        """The command that is printed as the next one."""
        found = re.search(r"^ *Next:.*?((?:SCRAPY_PROJECT=\S+ )?crawl4llm .*)$", self.out(line, **env), re.MULTILINE)
        assert found is not None, line
        return found[1]


@pytest.fixture(scope="module")
def shell(small_demo_web: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A shell in a project that ``crawl4llm init`` has made; a crawl of it has 60 pages of a small web."""
    folder = tmp_path_factory.mktemp("a shell")
    with forked_programs(folder / "bin", "crawl4llm"):
        yield with_project(Shell(folder, folder / "bin"), small_demo_web)


def with_project(shell: Shell, web: Web) -> Shell:
    """Make the project; the shell is in it then."""
    folder = shell.folder
    assert shell("command -v scrapy").returncode
    lines = shell.out("crawl4llm init 'mein projekt'").splitlines()
    project, corpus = folder / "mein projekt", folder / "my corpora/a web"
    corpus.parent.mkdir()
    corpus.symlink_to(web.corpus)
    settings = {"CORPUS": str(corpus), "SCORER_MODEL": str(web.model), "CRAWL_MAX_PAGES": 60, "SCORING_WORKERS": 1}
    given = "".join(f"{name} = {value!r}\n" for name, value in settings.items())
    (project / "small_web.py").write_text(f"from settings.simulation import *\n{given}")
    cfg = (project / "scrapy.cfg").read_text()
    (project / "scrapy.cfg").write_text(cfg.replace("default = settings.simulation", "default = small_web"))
    assert "Crawled 60 of 60 pages by influence" in shell.out("\n".join(lines[1:]))
    assert (project / "crawls/0001").is_dir()
    shell.folder = project
    return shell


def test_from_a_project_to_a_page(shell: Shell) -> None:
    extensions = '{"scrapy.extensions.telnet.TelnetConsole": null}'
    other = shell.next_of(
        "crawl4llm crawl influence -s OUTPUT_DIR='crawls/my crawl' -s CRAWL_MAX_PAGES=50 -s CRAWL_SEED=7 "
        f"-s EXTENSIONS='{extensions}'"
    )
    assert f"EXTENSIONS={extensions}" in other
    assert "OUTPUT_DIR" not in other
    assert "CRAWL_SEED=7" in other
    look = shell.next_of(other)
    assert look.startswith("crawl4llm explain clueweb22-")
    assert "influence " in shell.out(look)
    seeds = shell.folder / "my seeds.txt"
    shutil.copy(shell.folder / "crawls/my crawl/seeds.txt", seeds)
    again = shell.next_of("crawl4llm crawl influence -a seeds='my seeds.txt' -s OUTPUT_DIR='another/one'")
    assert "-a 'seeds=my seeds.txt'" in again
    shell.out(again)


NEXT = [
    ("default", "corpus ranks --out 'my ranks.tsv'"),
    ("live", "corpus ranks --out 'my ranks.tsv'"),
    ("default", "corpus demo --to 'my demo' --pages 400 --hosts 10"),
    ("default", "corpus known 'my sets' crawls/0001 --extract"),
    ("default", "trainscorer --positive 'good ones.jsonl' --negative 'bad ones.jsonl' --buckets 9 --out 'my model'"),
]
"""Commands that print the next one, by a project's profile; in ``live`` all name that of simulations, as ranks does."""


@pytest.mark.parametrize(("project", "line"), NEXT, ids=lambda word: word.split(" --")[0])
def test_what_comes_next(project: str, line: str, shell: Shell) -> None:
    line = line.replace("'my ", f"'my {project} ")
    for name, word in (("good", "fine"), ("bad", "poor")):
        texts = [json.dumps({"text": f"{word} words number {number} of them"}) for number in range(200)]
        (shell.folder / f"{name} ones.jsonl").write_text("\n".join(texts))
    web = f" -s CORPUS={shlex.quote(str(shell.folder.parent / 'my corpora/a web'))}" if "ranks" in line else ""
    given = shell.next_of(f"crawl4llm {line}{web}", SCRAPY_PROJECT=project)
    assert "of 60 pages" in shell.out(given, SCRAPY_PROJECT=project)


def test_the_index_that_is_missing(shell: Shell) -> None:
    url = json.loads((shell.folder / "crawls/0001/crawl.jsonl").read_text().splitlines()[0])["url"]
    explain = f"crawl4llm explain {url} --run crawls/0001"
    refused = shell(explain)
    found = re.search(r"make it: (crawl4llm .*)$", refused.stderr, re.MULTILINE)
    assert found is not None, refused.stderr
    shell.out(found[1])
    assert url in shell.out(explain)
    assert "<html" in shell.out(f"crawl4llm fetch {url}")


def copy_of(shell: Shell, name: str) -> Path:
    """A copy of the crawl in the project."""
    return Path(shutil.copytree(shell.folder / "crawls/0001", shell.folder / "crawls" / name))


def given_by(told: str, before: str) -> str:
    """The command that a message gives, to the end of its line."""
    found = re.search(rf"{before}(crawl4llm .*)$", told, re.MULTILINE)
    assert found is not None, told
    return found[1]


def test_an_archive_is_repaired(shell: Shell) -> None:
    index = copy_of(shell, "a copy") / "warc/index.cdxj"
    export = "crawl4llm export 'crawls/a copy' --out"
    index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[:-5]))
    short = shell.out(f"{export} 'a short export'")
    assert "5 not_indexed" in short
    shell.out(given_by(short, "^  "))
    assert "not_indexed" not in shell.out(f"{export} 'a whole export'")
    index.unlink()
    shell.out(given_by(shell(f"{export} 'an export anew'").stderr, "make it again: "))
    assert "not_indexed" not in shell.out(f"{export} 'an export anew'")


def test_an_archive_that_is_cut_short_is_mended(shell: Shell) -> None:
    file = max((copy_of(shell, "a cut one") / "warc").glob("*.warc*"), key=lambda path: path.stat().st_size)
    file.write_bytes(file.read_bytes()[:-40])
    shell.out(given_by(shell("crawl4llm corpus known 'cut sets' 'crawls/a cut one'").stderr, "of your own: "))
    shell.out("crawl4llm corpus known 'mended sets' 'crawls/a cut one'")


def test_what_is_missing_is_made(shell: Shell, tmp_path: Path) -> None:
    harmonic = "crawl4llm crawl influence -s URL_POLICY=harmonic"
    shell.out(given_by(shell(harmonic).stderr, "made by "))
    assert "of 60 pages by harmonic" in shell.out(f"{harmonic} -s HARMONIC_RANKS=ranks.tsv.gz")
    bound = "crawl4llm crawl influence -s URL_POLICY=bound"
    shell.out(given_by(shell(bound).stderr, "made by "))
    assert "of 60 pages by bound" in shell.out(f"{bound} -s BOUND_SCORES=bound.tsv.gz")
    given = shell("crawl4llm trainscorer --positive '../my corpora/a web' --negative x.jsonl --out 'no model'").stderr
    assert "-s 'CORPUS=../my corpora/a web'" in given
    assert "usage: crawl4llm explain ID-or-URL" in shell("crawl4llm explain").stderr
    assert "usage: crawl4llm archive check DIR" in shell("crawl4llm archive check").stderr


def test_a_storage_is_merged(shell: Shell, tmp_path: Path) -> None:
    storage = f"file://{tmp_path}/my storage"
    (tmp_path / "my storage").mkdir()
    merge = shell.next_of(f"crawl4llm crawl influence -s STORAGE='{storage}' -s CRAWL_PARTITIONS=2")
    shell.out(merge)
    shell.out(given_by(shell(f"crawl4llm frontier '{storage}' --verify").stderr, "a storage: use "))
    assert (shell.folder / "crawls/merged/crawl.jsonl").is_file()
    refused = shell(f"crawl4llm archive finish '{storage}'").stderr
    found = re.search(r"merge it first: (crawl4llm .*)$", refused, re.MULTILINE)
    assert found is not None, refused
    shell.out(found[1])
    shell.out("crawl4llm archive finish crawls/merged-2")


def test_a_live_crawl_is_replayed(shell: Shell, tmp_path: Path) -> None:
    """By the command that tests.testweb prints, and then by the one that this crawl prints."""
    web = subprocess.Popen(
        [sys.executable, "-m", "tests.testweb", "--folder", tmp_path / "my web", "--hosts", "10", "--pages", "300"],
        cwd=PROJECT,
        env={**shell.env, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert web.stdout is not None
        web.stdout.readline()
        line = web.stdout.readline().strip()
        assert line.startswith("SCRAPY_PROJECT=live scrapy crawl influence")
        crawl = line.replace("live scrapy", "live crawl4llm") + " -s CRAWL_MAX_PAGES=15 -s DOWNLOAD_DELAY=0.1"
        replay = shell.next_of(crawl)
        words = shlex.split(crawl)
        at = words.index("-a")
        known = shlex.join(["crawl4llm", "corpus", "known", "my live sets", "crawls/0001", *words[at + 2 :]])
        without = shell.next_of(known, SCRAPY_PROJECT="live")
        assert without.startswith("SCRAPY_PROJECT=live crawl4llm crawl influence -s ")
        assert "KNOWN_URLS=" in without
        assert "Crawled 15 of 15 pages" in shell.out(f"{without} -a {shlex.quote(words[at + 1])}")
    finally:
        web.send_signal(signal.SIGINT)
        web.wait(60)
    assert "-s SCORER=length" in replay
    assert " of 60 pages by influence" in shell.out(replay, SCRAPY_PROJECT="default")
    prefixed = shell.next_of(f"export SCRAPY_PROJECT=live; {replay}")
    shell.out(prefixed, SCRAPY_PROJECT="live")


# -- the program ------------------------------------------------------------------------------------------------------


def test_crawl4llm_has_the_commands_of_scrapy(shell: Shell, tmp_path: Path) -> None:
    """The installed program: only its link is on the path."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/crawl4llm").symlink_to(Path(sys.executable).with_name("crawl4llm"))
    assert "influence" in Shell(shell.folder, tmp_path / "bin").out("crawl4llm list").split()


def test_the_program_alone(shell: Shell) -> None:
    assert "--since" in shell.out("crawl4llm report --help")
    assert re.fullmatch(r"crawl4llm \S+\n", shell.out("crawl4llm --version"))
    told = shell.out("crawl4llm --help")
    assert "init" in told
    assert "crawl4llm COMMAND --help" in " ".join(told.split())
    unknown = shell("crawl4llm nonsense")
    assert (unknown.returncode, "Unknown command: nonsense" in unknown.stdout) == (2, True)
    assert shell("crawl4llm").returncode == 2
    assert shell.out("crawl4llm settings --get CRAWL_MAX_PAGES -s CRAWL_MAX_PAGES=9").strip() == "9"


@pytest.mark.parametrize("name", ["scrapy", "crawl4llm"])
def test_the_program_as_it_was_started(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name if that is found on the path; else by its path, or as a module."""
    script = Path(sys.executable).with_name(name)
    elsewhere = tmp_path / "not here"
    elsewhere.mkdir()
    (elsewhere / name).write_text("#!/bin/sh\n")
    (elsewhere / name).chmod(0o755)
    module = str(Path(sys.prefix, "site", name, "__main__.py"))
    for started, path, expected in [
        (str(script), str(script.parent), name),
        (module, str(script.parent), name),
        (str(script), str(elsewhere), str(script)),
        (str(script), "/nowhere", str(script)),
        (module, str(elsewhere), f"{sys.executable} -m {name}"),
        (str(elsewhere / name), "/nowhere", f"'{elsewhere}/{name}'"),
    ]:
        monkeypatch.setattr(sys, "argv", [started])
        monkeypatch.setenv("PATH", path)
        assert command("list") == f"{expected} list"
