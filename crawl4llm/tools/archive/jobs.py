"""The crawl of a dataset, which may go on: its JOBDIR knows how long each file was at the last commit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.crawl.job.job_commits import move_output
from crawl4llm.crawl.job.jobdir import JobDir
from crawl4llm.crawl.stored_crawl import StoredCrawl
from crawl4llm.tools.archive.folder import Dataset
from crawl4llm.warc.series import FileNames

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.warc.series import SeriesPosition


def require_idle(dataset: Dataset, settings: BaseSettings) -> None:
    """Raise InputError while a crawl writes the dataset, or holds the JOBDIR that is set."""
    jobdir = settings.get("JOBDIR")
    holder = JobDir(Path(jobdir), lock=False).holder() if jobdir else None
    if holder is not None:
        raise InputError(f"JOBDIR {jobdir} is in use by process {holder}; wait until it has ended, or stop it")
    dataset.require_idle()


@contextmanager
def resumable(dataset: Dataset, settings: BaseSettings) -> Iterator[None]:
    """Within, files of a dataset may get shorter; a paused crawl, whose JOBDIR is set, goes on at their new ends.

    Without JOBDIR such a crawl is refused when it is resumed. Raises InputError where the JOBDIR is in use, of another
    crawl, or the files hold more than it knows of.
    """
    jobdir = settings.get("JOBDIR")
    if not jobdir:
        yield
        return
    with StoredCrawl(Path(jobdir), change=True) as crawl:
        crawl.require_begun()
        if crawl.output(settings).resolve() != dataset.base.resolve():
            raise InputError(f"{dataset.given} is not what the crawl in JOBDIR {jobdir} has written")
        state = crawl.state
        for path, known in (
            (dataset.log, state.log.pages),
            (dataset.index, state.archive.index_offset),
            (dataset.text_index, state.archive.text_index_offset),
        ):
            if _size(path) > known:
                raise InputError(
                    f"{path} holds more than JOBDIR {jobdir} knows of: that crawl was killed; resume it, pause it with "
                    "Ctrl-C, then try again"
                )
        yield
        move_output(
            crawl.store,
            state.log._replace(pages=_size(dataset.log)),
            _moved(dataset, state.archive.pages, dataset.index),
            _moved(dataset, state.archive.texts, dataset.text_index),
        )
        crawl.store.commit()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _moved(dataset: Dataset, position: SeriesPosition, index: Path) -> SeriesPosition:
    last = _last_file(dataset, position, index) if position.offset else None
    return position._replace(offset=_size(last) if last else 0, index_offset=_size(index))


def _last_file(dataset: Dataset, position: SeriesPosition, index: Path) -> Path | None:
    """The file of a series in which the crawl would go on; None where it is gone."""
    settings = read_json(dataset.base / SETTINGS).get("settings")
    prefix = str(settings.get("WARC_PREFIX", "")) if isinstance(settings, dict) else ""
    prefix = f"{prefix}-text" if index == dataset.text_index else prefix
    for name, path in dataset.warc_files().items():
        suffix = name[name.rindex(".warc") :]
        for host in (None, ""):  # the names of a simulation, and those of a live crawl
            if FileNames(prefix, suffix, host).serial(name) == position.serial:
                return path
    return None
