"""Running real crawls, as a user does: ``scrapy crawl influence`` in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import scrapy_server
from scrapy_server import Process

PROJECT = Path(__file__).resolve().parents[2]
SHARED = PROJECT.parent / "shared"


class Web(NamedTuple):
    """A corpus and a model to crawl it with."""

    corpus: Path
    model: Path


TIMEOUT = 900
"""Seconds that a command may take: it takes a few, or hangs, or the machine is busy."""


Limits = Mapping[str, int]
"""Limits of a process by names of ``resource``, such as ``RLIMIT_FSIZE``: a disk that fills up."""


def scrapy(
    *args: str, env: Mapping[str, str] | None = None, cwd: Path = PROJECT, limits: Limits | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a scrapy command in the project; ``PYTHONPATH`` in ``env`` comes before the project's own.

    It is forked from a process that has all imported, unless something is asked for that Python settles when it starts.
    """
    return python("-m", "scrapy", *args, env=env, cwd=cwd, limits=limits)


def python(
    *program: object,
    env: Mapping[str, str] | None = None,
    cwd: Path = PROJECT,
    limits: Limits | None = None,
    check: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m MODULE`` or ``python -c CODE`` with arguments, forked as :func:`scrapy` is; ``check``: it is to
    end well."""
    whole, (option, name, *args) = _environment(env or {}), map(str, program)
    if _may_be_forked(env or {}):
        done = scrapy_server.run(args, cwd, whole, TIMEOUT, program=(option, name), limits=limits)
    else:
        assert not limits
        command = [sys.executable, option, name, *args]
        done = subprocess.run(command, cwd=cwd, env=whole, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def begin_python(
    *program: object,
    env: Mapping[str, str] | None = None,
    cwd: Path = PROJECT,
    silent: Sequence[str] = (),
    limits: Limits | None = None,
) -> Process:
    """Start ``python -m MODULE`` or ``python -c CODE`` as a shell does, in a process group of its own, forked."""
    whole, (option, name, *args) = _environment(env or {}), map(str, program)
    files = dict.fromkeys(silent, os.devnull)
    return Process(args, cwd, whole, program=(option, name), files=files, session=True, limits=limits)


def begin(
    args: Sequence[str],
    env: Mapping[str, str] | None = None,
    *,
    cwd: Path = PROJECT,
    silent: Sequence[str] = (),
    is_forked: bool = True,
    limits: Limits | None = None,
) -> Process | subprocess.Popen[str]:
    """Start a scrapy command as a shell does, in a process group of its own; of ``out`` and ``err``, what is silent is
    thrown away. A test of its memory, or of how it starts, has it not forked: a fork has what others import too."""
    whole = _environment(env or {})
    if is_forked and _may_be_forked(env or {}):
        return Process(args, cwd, whole, files=dict.fromkeys(silent, os.devnull), session=True, limits=limits)
    out, err = (subprocess.DEVNULL if name in silent else subprocess.PIPE for name in ("out", "err"))
    command = [sys.executable, "-m", "scrapy", *args]
    return subprocess.Popen(command, cwd=cwd, stdout=out, stderr=err, text=True, env=whole, start_new_session=True)


def _environment(given: Mapping[str, str]) -> dict[str, str]:
    paths = [given.get("PYTHONPATH", ""), str(PROJECT), str(PROJECT / "tests/helpers")]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # as in an activated environment
    return {**os.environ, "PATH": path, **given, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _may_be_forked(given: Mapping[str, str]) -> bool:
    """Whether an environment says nothing that Python settles when it starts, and no module of its PYTHONPATH has the
    name of one that may be imported already."""
    folders = [Path(path) for path in given.get("PYTHONPATH", "").split(os.pathsep) if path]
    names = {file.stem for folder in folders for file in folder.glob("*") if file.suffix in ("", ".py")}
    heeded = ("PYTHONPATH", "PYTHONUNBUFFERED")
    return not any(name.startswith("PYTHON") and name not in heeded for name in given) and not any(
        name in ("sitecustomize", "usercustomize") or (name.isidentifier() and find_spec(name)) for name in names
    )


def crawl_args(web: Web | None, output: Path, seeds: Path | None = None, **settings: object) -> list[str]:
    """Arguments of ``scrapy`` for a crawl."""
    given: dict[str, object] = {"OUTPUT_DIR": output, "SCORING_WORKERS": 1, "SCORE_CACHE": "", **settings}
    if web is not None:
        given = {"CORPUS": web.corpus, "SCORER_MODEL": web.model, **given}
    args = ["crawl", "influence"]
    if seeds is not None:
        args += ["-a", f"seeds={seeds}"]
    for name, value in given.items():
        args += ["-s", f"{name}={value}"]
    return args


def crawl(
    web: Web | None, output: Path, seeds: Path | None = None, env: dict[str, str] | None = None, **settings: object
) -> subprocess.CompletedProcess[str]:
    """Run a crawl to its end."""
    return scrapy(*crawl_args(web, output, seeds, **settings), env=env)


def crawl_log(output: Path) -> list[dict[str, Any]]:
    """The lines of a crawl's log."""
    return [json.loads(line) for line in (output / "crawl.jsonl").read_text().splitlines()]


def stats(output: Path) -> dict[str, Any]:
    """A crawl's own statistics, without their prefix."""
    figures = json.loads((output / "stats.json").read_text())
    return {key.removeprefix("crawl4llm/"): value for key, value in figures.items() if key.startswith("crawl4llm/")}


def error_of(result: subprocess.CompletedProcess[str]) -> str:
    """The one line by which a command said what was wrong; fails unless that is what it did."""
    assert result.returncode != 0, result.stdout + result.stderr
    assert "Traceback" not in result.stderr, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("crawl4llm: error: ")]
    assert len(lines) == 1, result.stderr
    return lines[0].removeprefix("crawl4llm: error: ")
