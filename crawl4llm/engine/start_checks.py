"""The checks before a crawl: whatever can be seen to be wrong before anything is written or sent, all of it at once."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.settings import SETTINGS_PRIORITIES

from crawl4llm.base.errors import InputError, NothingToDo, as_input_error
from crawl4llm.base.input_files import given_path, open_input
from crawl4llm.base.output_dir import check_output_dir
from crawl4llm.crawl import Job, Seeds, read_seeds
from crawl4llm.engine.profiles import with_addons
from crawl4llm.engine.settings import check_values, misspelt
from crawl4llm.engine.webs import web_class
from crawl4llm.options import DEMO, Options, read_options, wrong_settings
from crawl4llm.policies import load_policy
from crawl4llm.scoring import load_extractor, load_scorer, read_rules

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.base.pages import Corpus
    from crawl4llm.crawl import Web

JOB = "job"
"""The JOBDIR in the output folder."""


class Faults:
    """Faults of the input, a line each."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Note the InputError by which the block ends, once."""
        try:
            yield
        except NothingToDo:
            pass
        except InputError as error:
            if str(error) not in self.lines:
                self.lines.append(str(error))


def check_start(
    settings: BaseSettings, seeds: Path | Sequence[str] | None, corpus: Corpus | None, out: Path, faults: Faults
) -> tuple[Options, Seeds | None]:
    """Note what is wrong with settings, policy, scorer, seeds and output folder; ``corpus`` holds the seeds, None if it
    is not open.

    Return the options, and the seeds if they are there. A setting that is wrong is set to its default here, so that
    others are looked at too.
    """
    with _unlogged():
        return _check_start(settings, seeds, corpus, out, faults)


def _check_start(
    settings: BaseSettings, seeds: Path | Sequence[str] | None, corpus: Corpus | None, out: Path, faults: Faults
) -> tuple[Options, Seeds | None]:
    with faults.noted():
        check_values(settings)
    for name, fault in wrong_settings(settings).items():
        faults.lines.append(fault)
        settings.set(name, None, priority="cmdline")
    digests: dict[str, str] = {}
    options = _options(settings, faults)
    if options.storage is not None or options.cluster is not None:
        faults.lines.append(
            "STORAGE and CLUSTER are for crawls by several workers: leave them out, or begin by scrapy crawl influence"
        )
    with faults.noted():
        for given, meant in misspelt(settings, options.own).items():
            raise InputError(f"setting {given} is not known; did you mean {' or '.join(meant)}?")
    with faults.noted():
        digests |= _scorer(settings, options)
    there = False
    with faults.noted():
        _check_place(out)
        there = True
    web: Web | None = None
    with faults.noted():
        prepared = with_addons(settings)
        if not there:
            prepared.set("JOBDIR", None, priority="cmdline")
        web = web_class(prepared)(prepared)
    with faults.noted():
        policy = load_policy(options.url_policy)
        if web is not None:
            web.check_policy(policy)
    found = None
    with faults.noted():
        if isinstance(seeds, Path) and corpus is None:
            with as_input_error(f"seeds file {seeds} cannot be read"):
                open_input(seeds).close()
        elif seeds and corpus is not None:
            found = read_seeds(seeds, corpus)
            digests["seeds_digest"] = found.digest
    if there:
        with faults.noted():
            _refuse_another(out, options, digests)
    return options, found


@contextmanager
def _unlogged() -> Iterator[None]:
    """Log nothing: the crawl, which looks at the same things, will."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _options(settings: BaseSettings, faults: Faults) -> Options:
    """Return the options; those without a scorer if the rules beside the model are wrong, which is noted."""
    with faults.noted():
        return read_options(settings)
    copy = settings.copy()
    copy.set("SCORER_MODEL", None, priority="cmdline")
    return read_options(copy)


def _scorer(settings: BaseSettings, options: Options) -> dict[str, str]:
    """Return the digest of the scorer. Raises InputError if it cannot be loaded, or the extractor is not its own."""
    load_extractor(options.text_extractor)
    given = settings.get("SCORER_MODEL")
    if given and options.scorer_model is None:
        return {}  # its rules are wrong, which was said
    if options.corpus == DEMO and options.scorer_model is None:
        return {}  # that web brings its own
    scorer = load_scorer(options)
    rules = read_rules(given_path(options.scorer_model)) if options.scorer_model else None
    if rules is not None and options.extracts and rules.extractor not in {None, options.text_extractor}:
        raise InputError(
            f"TEXT_EXTRACTOR = {options.text_extractor!r} does not fit SCORER_MODEL {options.scorer_model}, which was "
            f"trained on texts by {rules.extractor}; leave TEXT_EXTRACTOR out"
        )
    return {"model_digest": f"sha256:{scorer.digest}"}


def take_extractor(settings: BaseSettings) -> str | None:
    """Set the extractor that the rules beside the model name, unless the command line has one; return its name if the
    profile has another."""
    model, ours = settings.get("SCORER_MODEL"), settings.get("TEXT_EXTRACTOR")
    if not model or ours is None or (settings.getpriority("TEXT_EXTRACTOR") or 0) >= SETTINGS_PRIORITIES["cmdline"]:
        return None
    rules = read_rules(given_path(str(model)))
    if rules is None or rules.extractor in {None, ours}:
        return None
    settings.set("TEXT_EXTRACTOR", rules.extractor, priority="cmdline")
    return rules.extractor


def _check_place(out: Path) -> None:
    """Raise InputError if the output folder cannot be written."""
    there = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"--out {out} cannot be written: {there} is {'not writable' if there.is_dir() else 'no folder'}"
        )


def _refuse_another(out: Path, options: Options, digests: dict[str, str]) -> None:
    """Raise InputError if the output folder has another crawl."""
    if (out / JOB).exists():
        job = Job(out / JOB, options, look=True)
        job.close()
        if different := job.differing(digests):
            raise InputError(
                f"--out {out} holds another crawl (other {' and '.join(sorted(different))}); give another folder"
            )
    else:
        check_output_dir(out, named_by="--out")


def check_disk(out: Path, options: Options) -> None:
    """Raise InputError if the disk of the output folder has less room than a live crawl stops at."""
    there = next(path for path in (out, *out.absolute().parents) if os.path.lexists(path))
    with as_input_error(f"--out {out} cannot be looked at"):
        free = shutil.disk_usage(there).free
    if free < options.disk_min_free:
        least = f"less than DISK_MIN_FREE ({options.disk_min_free / 1e6:,.0f} MB)"
        raise InputError(
            f"--out {out}: its disk has {free / 1e6:,.0f} MB free, {least}; make room, or give another folder"
        )
