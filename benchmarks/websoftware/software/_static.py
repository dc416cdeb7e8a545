"""What site generators share: files with a header, and reading a target of static files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from benchmarks.websoftware.markup import MARKDOWN
from benchmarks.websoftware.site import Fill, Shown
from benchmarks.websoftware.software._common import split


def write(file: Path, text: str) -> None:
    """Write a file, and the folders that it is in."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def front_matter(values: Mapping[str, str], mark: str = "---") -> str:
    """Return a header as most generators read it."""
    return "\n".join([mark, *(f"{key}: {value}" for key, value in values.items()), mark, ""])


def page(fill: Fill) -> str:
    """Return a text with its title as Markdown."""
    return f"# {fill.title}\n\n{MARKDOWN.whole(fill)}"


def listed(fills: Iterable[Fill]) -> str:
    """Return links to texts as Markdown."""
    return "\n".join(f"- [{fill.title}]({fill.path})" for fill in fills) + "\n"


def read_static(target: str, shape: str, kinds: Iterable[tuple[str, str]]) -> Shown:
    """Tell a page by the regular expression of its path, and others by the expressions that come first."""
    path, _ = split(target)
    for pattern, kind in kinds:
        if re.match(pattern, path):
            return Shown(None, kind)
    clean = path.removesuffix("index.html")
    if re.fullmatch(shape, clean):
        return Shown(clean, "page" if path == clean and "?" not in target else "other URL of a page")
    return Shown(None, "front page" if clean == "/" else "other")
