"""The demo web on disk: its place, and its build, once and whole.

A demo web has traits that the paper measures on ClueWeb22 (Craw4LLM, section 4 and appendix A). In-degrees have a
power-law tail and hardly correlate with influence, pages link to pages of similar influence, and sites differ.
"""

from __future__ import annotations

import fcntl
import logging
from pathlib import Path
from typing import Final, NamedTuple

from crawl4llm.base.errors import InputError
from crawl4llm.base.processes import cores
from crawl4llm.base.whole_files import whole_folder, writing

logger = logging.getLogger(__name__)

_VERSION: Final = 3  # to be raised with every change of what is generated
PAGES, HOSTS, _FEWEST_HOSTS = 20_000, 500, 10


class DemoPaths(NamedTuple):
    """Paths of a demo web."""

    corpus: Path  # root of its ClueWeb22 tree
    model: Path  # its fastText model, with the label ``__label__hq``


def demo_paths(folder: Path) -> DemoPaths:
    """Return the paths of a demo web that was built in ``folder``."""
    return DemoPaths(folder / "clueweb22", folder / "scorer.bin")


def ensure_demo(
    root: Path, *, pages: int = PAGES, hosts: int = HOSTS, seed: int = 0, jobs: int | None = None, progress: bool = True
) -> DemoPaths:
    """Return the demo web in a folder of ``root``; build it first if it is missing.

    Of several processes that want it at the same time, one builds and the others wait. ``jobs`` is the number of
    processes to build with, by default one for each core. Raises InputError for impossible sizes, and if the folder
    cannot be written.
    """
    folder = root / f"demo-{_VERSION}-{pages}-{hosts}-{seed}"
    if folder.exists():
        return demo_paths(folder)
    with writing(root, "the demo web"):
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{folder.name}.lock").open("wb") as lock:
            # Not flock: the processes of a killed build, which outlive it for a moment, do not hold this lock.
            fcntl.lockf(lock, fcntl.LOCK_EX)
            if not folder.exists():
                logger.info("Building the demo web in %s: %d pages, once, in about half a minute", folder, pages)
                build_demo(folder, pages=pages, hosts=hosts, seed=seed, jobs=jobs, progress=progress)
    return demo_paths(folder)


def build_demo(
    to: Path, *, pages: int = PAGES, hosts: int = HOSTS, seed: int = 0, jobs: int | None = None, progress: bool = True
) -> DemoPaths:
    """Build a demo web in ``to``, which must be absent or empty; it appears there only when it is complete.

    Leftovers of a killed build beside it are removed. Parameters and errors as for :func:`ensure_demo`.
    """
    from simulate.demo.web import SMALLEST_SITE  # once, and not where the web is there already
    from simulate.demo.write import Plan, write_web  # likewise

    if hosts < _FEWEST_HOSTS:
        raise InputError(f"--hosts {hosts}: a demo web has at least {_FEWEST_HOSTS} hosts")
    if pages < hosts * 2 * SMALLEST_SITE:
        raise InputError(f"--pages {pages}: {hosts} hosts need at least {hosts * 2 * SMALLEST_SITE} pages")
    to = to.absolute()
    with writing(to, "the demo web"):
        if to.exists() and (not to.is_dir() or any(to.iterdir())):
            raise InputError(f"{to}: exists and is not an empty folder; name another one, or remove it")
        with whole_folder(to) as temporary:
            corpus, model = demo_paths(temporary)
            write_web(Plan(pages, hosts, seed), corpus, model, jobs=jobs or cores(), progress=progress)
    return demo_paths(to)
