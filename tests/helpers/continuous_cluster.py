"""Crawls in continuous order by workers that are processes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import cluster_helpers
import crawl_helpers
from crawl_helpers import crawl_log, scrapy
from scrapy_server import Process


def storage_at(folder: Path, partitions: int = 4) -> dict[str, object]:
    folder.mkdir()
    return {"STORAGE": f"file://{folder}", "CRAWL_PARTITIONS": partitions}


def begin(arguments: list[str], **env: str) -> Process | subprocess.Popen[str]:
    """Start a worker, in a process group of its own."""
    return crawl_helpers.begin(arguments, env, silent=["out"])


def merged(storage: dict[str, object], out: Path) -> list[dict[str, Any]]:
    """Merge a crawl, after it was verified; the archive of that is whole."""
    cluster_helpers.merged(str(storage["STORAGE"]), out)
    checked = scrapy("archive", "check", str(out))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    return crawl_log(out)
