"""What modules of software share: running commands, names for URLs, parsing targets."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from benchmarks.websoftware.texts import Text

_TAKEN = ("main page", "index", "start", "sidebar", "welcome")
"""Names that pages of some software have already."""


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command of a package; returns what it printed. Raises RuntimeError with its last words if it fails."""
    result = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if result.returncode:
        said = (result.stdout + result.stderr)[-3000:]
        raise RuntimeError(f"{' '.join(map(str, command))[:300]}: status {result.returncode}: {said}")
    return result.stdout


def slug(title: str, mark: str = "-") -> str:
    """Return a title as a part of a URL: lower-case letters and digits with a mark between the words."""
    return re.sub(r"[^a-z0-9]+", mark, title.lower()).strip(mark)


def split(target: str) -> tuple[str, dict[str, str]]:
    """Return the decoded path of a target and its parameters."""
    parts = urlsplit(target if target.startswith("/") else f"/{target}")
    return unquote(parts.path), dict(parse_qsl(parts.query.replace(";", "&"), keep_blank_values=True))


def distinct(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that are taken or were there before, whatever their case."""
    used = set(_TAKEN)
    found = []
    for name in names:
        new, number = name, 2
        while new.lower() in used:
            new, number = f"{name} {number}", number + 1
        used.add(new.lower())
        found.append(new)
    return found


def titles(texts: Sequence[Text]) -> list[str]:
    """Return a title for each text that no other of them has, not even as :func:`slug`."""
    return distinct([" ".join(re.sub(r"[^A-Za-z0-9]+", " ", text.title).split()) or "Page" for text in texts])


def day(number: int, of: int) -> str:
    """Return a date for text ``number`` of a site, YYYY-MM-DD, from 2012 to 2023."""
    months = 12 * 12 * number // max(of, 1)
    return f"{2012 + months // 12}-{months % 12 + 1:02}-{number % 28 + 1:02}"
