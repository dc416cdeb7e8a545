"""The wheel, outside the checkout: what is in it, ``crawl4llm init``, and a crawl in the project that it makes.

Nothing comes from the network: the environment finds the packages of the one that runs the tests, not its crawl4llm.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest
from crawl_helpers import PROJECT, Web, crawl_log, error_of

from crawl4llm import __version__

pytest.importorskip("setuptools", minversion="77", reason="needs the extra test")

COMMANDS = {
    "archive",
    "corpus",
    "crawl",
    "docs",
    "evaluate",
    "explain",
    "export",
    "frontier",
    "live",
    "report",
    "simulate",
    "trainlm",
    "trainscorer",
}
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
OFFLINE = ("--no-index", "--no-deps")
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "SCRAPY_"))}
"""An environment that knows nothing of the checkout."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, built from a copy: a build leaves files where it is made."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("crawl4llm", "simulate", "settings", "docs", ".ci"):
        shutil.copytree(PROJECT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, source)
    for top in ("crawl4llm", "simulate"):  # left by the build of an earlier state
        (source / "build/lib" / top).mkdir(parents=True)
        (source / "build/lib" / top / "deleted.py").touch()
    subprocess.run([*PIP, "wheel", *OFFLINE, "--no-build-isolation", "--wheel-dir", out, source], check=True, env=CLEAN)
    (path,) = out.iterdir()
    return path


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment in which the wheel is installed."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    subprocess.run(
        [*PIP, "--python", folder / "bin/python", "install", *OFFLINE, "--no-compile", wheel], check=True, env=CLEAN
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "packages.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def run(environment: Path, cwd: Path, *command: object, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the environment, which knows nothing of the checkout."""
    program, *args = map(str, command)
    return subprocess.run(
        [environment / "bin" / program, *args],
        cwd=cwd,
        env={**CLEAN, **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


def test_the_wheel_has_the_code_the_profiles_and_the_pages(wheel: Path) -> None:
    folders = (PROJECT / "crawl4llm", PROJECT / "simulate")
    code = {str(path.relative_to(PROJECT)) for top in folders for path in top.rglob("*") if path.is_file()}
    profiles = {f"crawl4llm/profiles/{path.name}": path.read_bytes() for path in (PROJECT / "settings").glob("*.py")}
    profiles |= {f"crawl4llm/docs/{path.name}": path.read_bytes() for path in (PROJECT / "docs").glob("*.md")}
    with ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
        (metadata,) = (file.read(name).decode() for name in file.namelist() if name.endswith("/METADATA"))
        assert {name: file.read(name) for name in profiles} == profiles
    assert names == {name for name in code if "__pycache__" not in name} | set(profiles)
    assert "License-Expression: Apache-2.0\n" in metadata


def test_from_an_empty_folder_to_a_crawl(environment: Path, demo_web: Web, tmp_path: Path) -> None:
    assert run(environment, tmp_path, "crawl4llm", "--version").stdout == f"crawl4llm {__version__}\n"
    made = run(environment, tmp_path, "crawl4llm", "init", "x")
    assert made.returncode == 0, made.stderr
    project = tmp_path / "x"
    for path in (*(PROJECT / "settings").glob("*.py"), PROJECT / "scrapy.cfg"):
        assert (project / path.relative_to(PROJECT)).read_bytes() == path.read_bytes()
    again = run(environment, tmp_path, "python", "-m", "crawl4llm", "init", "x")
    assert error_of(again) == "init x: exists already; give another folder, or remove it"

    listed = run(environment, project, "python", "-m", "scrapy").stdout
    assert set(re.findall(r"^  (\w+) ", listed, re.MULTILINE)) >= COMMANDS
    settings = (f"CORPUS={demo_web.corpus}", f"SCORER_MODEL={demo_web.model}", "CRAWL_MAX_PAGES=60")
    crawl = ("python", "-m", "scrapy", "crawl", "influence", *(f"-s{setting}" for setting in settings))
    crawled = run(environment, project, *crawl)
    assert crawled.returncode == 0, crawled.stderr
    assert len(crawl_log(project / "crawls/0001")) == 60

    live = run(environment, project, *crawl, "-a", "seeds=seeds.txt", SCRAPY_PROJECT="live")
    assert "USER_AGENT" in error_of(live)
    (tmp_path / "lmdb.py").write_text("raise ModuleNotFoundError(name=__name__)")
    assert "pip install 'lmdb>=1.6.2'" in error_of(run(environment, project, *crawl, PYTHONPATH=str(tmp_path)))


def test_how_to_install_an_extra(environment: Path, tmp_path: Path) -> None:
    says = "from crawl4llm.base.installed import to_install as say; print(say('evaluate'), say('other'), sep='\\n')"
    said = run(environment, tmp_path, "python", "-c", says).stdout.splitlines()
    assert said == [
        "pip install 'duckdb>=1.1' 'Jinja2>=3.1.6' 'matplotlib>=3.8' 'scipy>=1.11'",
        "pip install 'PATH-OF-THE-WHEEL[other]'",
    ]


def test_without_a_project(environment: Path, demo_web: Web, tmp_path: Path) -> None:
    """The commands that need none, in an empty folder."""
    listed = run(environment, tmp_path, "crawl4llm", "docs")
    assert {path.stem for path in (PROJECT / "docs").glob("*.md")} <= set(
        re.findall(r"^(\S+) ", listed.stdout, re.MULTILINE)
    )
    assert run(environment, tmp_path, "crawl4llm", "docs", "scope").stdout == (PROJECT / "docs/scope.md").read_text()
    told = error_of(run(environment, tmp_path, "crawl4llm", "docs", "scop"))
    assert told == "there is no page 'scop'; did you mean scope?"
    simulate = ("crawl4llm", "simulate", str(demo_web.corpus), "--scorer", str(demo_web.model), "--pages", "60")
    crawled = run(environment, tmp_path, *simulate, "--out", "out")
    assert crawled.returncode == 0, crawled.stderr
    assert len(crawl_log(tmp_path / "out")) == 60
    live = run(environment, tmp_path, "crawl4llm", "live", "https://example.org/", "-s", "SCORER=length", "--dry-run")
    assert error_of(live).startswith("--contact is missing")
