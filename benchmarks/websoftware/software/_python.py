"""Software of the package index: an environment for each, and the web applications that run in them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.websoftware.site import Backend
from benchmarks.websoftware.software._common import run

FILLERS = Path(__file__).parent / "fillers"
_WORKERS = "2"
DOCS = (
    *("setuptools<80", "sphinx==9.0.4", "myst-parser==5.2.0", "sphinx-rtd-theme==3.1.0", "sphinx-intl==2.4.0"),
    *("mkdocs==1.6.1", "mkdocs-material==9.8.2", "mkdocs-static-i18n==1.3.1", "markdown"),
    *("nikola==8.3.3", "doit==0.37.0"),
)
"""Generators of static sites, which share an environment."""


def environment(place: Path, name: str, packages: Sequence[str]) -> Path:
    """Return the Python of an environment that has packages; it is made once and shared by sites."""
    folder = place.parents[1] / "venvs" / name
    done, wanted = folder / "installed", "\n".join(packages)
    python = folder / "bin/python"
    if not done.exists() or done.read_text() != wanted:
        run([sys.executable, "-m", "venv", "--without-pip", folder], place)
        pip = [sys.executable, "-m", "pip", "--python", str(python), "--quiet", "--disable-pip-version-check"]
        run([*pip, "install", "--no-compile", *packages], place)  # most of its modules are never imported
        done.write_text(wanted)
    return python


def python_of(place: Path, name: str) -> Path:
    """Return the Python of an environment that is there."""
    return place.parents[1] / "venvs" / name / "bin/python"


def gunicorn(python: Path, application: str, socket: str, folder: Path) -> list[str]:
    """Return the command that serves a WSGI application."""
    options = ["--bind", socket, "--workers", _WORKERS, "--chdir", str(folder), "--timeout", "120"]
    return [str(python), "-m", "gunicorn", *options, application]


def served(python: Path, project: Path, socket: str, application: str, variables: Mapping[str, str]) -> Backend:
    """Serve a Django project by gunicorn; the web server in front serves its static files."""
    static, command = project / "static", gunicorn(python, application, socket, project)
    aliases = {"/static/": static}
    return Backend(static, "proxy", socket=socket, commands=[command], environment=variables, aliases=aliases)


def fill(python: Path, script: str, place: Path, variables: Mapping[str, str]) -> None:
    """Run a script of ``fillers`` in an environment; it reads ``content.json`` in the folder it runs in."""
    run([python, FILLERS / script], place, {"PYTHONPATH": str(place), **variables})
    (place / "content.json").unlink()
