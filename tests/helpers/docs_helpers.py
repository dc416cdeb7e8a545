"""The documentation as tests see it: its pages, its command blocks, and a project in which these run."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from crawl_helpers import PROJECT, TIMEOUT, Web

DOCS = PROJECT / "docs"
PAGES = [PROJECT / "README.md", *sorted(DOCS.glob("*.md"))]
_BLOCK = re.compile(r"(?ms)^(?:<!-- not run: ([^\n]+) -->\n)?```(\w*)\n(.*?)^```$")
_SMALLER = {"--n 10000": "--n 100", "SCOPE_DOMAINS=edu,ac.uk,wikipedia.org": "SCOPE_DOMAINS=test,example"}
"""What is not in a small demo web, and what is."""
_SETTINGS = """\
from settings.simulation import *

CORPUS = {corpus!r}
SCORER_MODEL = {model!r}
CRAWL_MAX_PAGES, CRAWL_BATCH_SIZE, CRAWL_SEEDS, SCORING_WORKERS = 100, 20, 20, 0
"""


class Block(NamedTuple):
    """A fenced block of a page."""

    text: str
    why_not: str
    """Why it is not run; empty where it is."""


def blocks(page: Path, kind: str = "sh") -> list[Block]:
    """The blocks of a kind."""
    return [Block(text, why) for why, found, text in _BLOCK.findall(page.read_text()) if found == kind]


def make_project(folder: Path, web: Web) -> None:
    """A project with a small demo web as its corpus, and what the commands of the documentation name."""
    folder.mkdir()
    (folder / "scrapy.cfg").write_text("[settings]\ndefault = small\n")
    (folder / "small.py").write_text(_SETTINGS.format(corpus=str(web.corpus), model=str(web.model)))
    (folder / "ClueWeb22_A").symlink_to(web.corpus)
    for name in ("model.bin", "scorer.bin"):
        (folder / name).symlink_to(web.model)


def make_crawls(folder: Path) -> None:
    """Two crawls in a project, with archives under the names by which pages call them."""
    run(folder, "scrapy crawl influence -s URL_POLICY=random\nscrapy crawl influence")
    run(folder, "scrapy export crawls/0001 --out export")
    for name in ("archive", "archive-of-may", "archive-of-june", "commoncrawl", "CC-MAIN-2026-40/warc"):
        shutil.copytree(folder / "crawls/0002/warc", folder / name)
    seeds = (folder / "crawls/0001/seeds.txt").read_text().splitlines()
    (folder / "more-seeds.txt").write_text("\n".join(seeds[:5]) + "\n")
    (folder / "lists").mkdir()
    (folder / "lists/spam.txt").write_text("spam.com\n")
    ranks = "#harmonicc_pos\t#harmonicc_val\t#pr_pos\t#pr_val\t#host_rev\n1\t2.5E7\t1\t0.005\torg.example\n"
    (folder / "cc-main-2026-host-ranks.txt.gz").write_bytes(gzip.compress(ranks.encode()))


def run(folder: Path, commands: str) -> str:
    """Run commands in a shell, as somebody would who copied them; return what they print. Fails where one does."""
    path = f"{folder}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}"
    env = {**os.environ, "PYTHONPATH": str(PROJECT), "PATH": path}
    env |= {"HF_HOME": f"{folder}/huggingface", "HF_HUB_OFFLINE": "1"}
    env.pop("SCRAPY_PROJECT", None)
    for asked, held in _SMALLER.items():
        commands = commands.replace(asked, held)
    shell = ["bash", "-euo", "pipefail", "-c", commands]
    done = subprocess.run(shell, cwd=folder, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert done.returncode == 0, f"{commands}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout
