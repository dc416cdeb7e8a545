"""Someone else's Scrapy project, with the add-on, and its crawls."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import crawl_helpers
from addon_site import Site

ADDON = 'ADDONS = {"crawl4llm.addon.Addon": 500}\n'


class Project(NamedTuple):
    """Someone's Scrapy project."""

    root: Path
    model: Path


class Crawled(NamedTuple):
    """A finished crawl."""

    site: Site
    output: Path
    items: list[dict[str, Any]]
    """What the spider yielded, through the project's own feed export."""
    stderr: str

    @property
    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.output / "crawl.jsonl").read_text().splitlines()]

    @property
    def stats(self) -> dict[str, Any]:
        figures: dict[str, Any] = json.loads((self.output / "stats.json").read_text())
        return figures

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of crawl4llm."""
        prefix = "crawl4llm/"
        return {key.removeprefix(prefix): value for key, value in self.stats.items() if key.startswith(prefix)}

    def item(self, **wanted: object) -> dict[str, Any]:
        """The one item that has these fields."""
        (found,) = (item for item in self.items if wanted.items() <= item.items())
        return found


def scrapy(*args: str, cwd: Path, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return crawl_helpers.scrapy(*args, cwd=cwd, **kwargs)


def crawl(project: Project, spider: str, site: Site, output: Path, *args: str, **kwargs: Any) -> Crawled:
    """Run a spider of the project to its end."""
    items = output.with_suffix(".items.jsonl")
    given = ["-a", f"site={site.url}", "-o", str(items), "-s", f"OUTPUT_DIR={output}", "-s", "LOG_LEVEL=INFO", *args]
    result = scrapy("crawl", spider, *given, cwd=project.root, **kwargs)
    assert result.returncode == 0, result.stderr
    lines = items.read_text().splitlines() if items.exists() else []
    return Crawled(site, output, [json.loads(line) for line in lines], result.stderr)
