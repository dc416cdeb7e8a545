"""The live web: pages come over the network, and nothing is known of one before its fetch."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from scrapy.settings import BaseSettings
from scrapy.utils.misc import load_object

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.processes import return_freed_memory
from crawl4llm.crawl import CONTROL, FetchedWeb, InjectFolder, RatePages, RealClock, read_control
from crawl4llm.live.addresses import Rules
from crawl4llm.live.identity import check_identity, user_agent
from crawl4llm.live.network import Network
from crawl4llm.live.opt_outs import OptOuts
from crawl4llm.live.reading import Reader, Unpacking
from crawl4llm.live.wire import WireHandler
from crawl4llm.optouts import TABLE_DATE
from crawl4llm.scoring import PageRater, Raters
from crawl4llm.warc import host_name

logger = logging.getLogger(__name__)


class LiveWeb(FetchedWeb):
    """The web itself; see :class:`crawl4llm.crawl.web.Web`."""

    profile: ClassVar[str] = "live"
    reader: Reader
    """The reader of its pages, after :meth:`rating`."""
    tells_sites_apart = keeps_answers = True

    def __init__(self, settings: BaseSettings) -> None:
        return_freed_memory()  # a live crawl runs for weeks
        self._settings = settings
        super().__init__(settings)
        check_identity(settings)
        self.clock = RealClock(settings.getfloat("DOWNLOAD_DELAY"))
        self.host = host_name()
        Rules.of(self.options)  # says what is wrong before anything is opened
        if leak := _leak(settings):
            logger.warning("%s: requests may go to private addresses too; start from settings/live.py", leak)
        if self.options.corpus:
            raise InputError(f"CORPUS {self.options.corpus} is for simulations; leave it out, or SCRAPY_PROJECT=live")
        self._injected: InjectFolder | None = None
        if settings.get("JOBDIR"):
            jobdir = Path(settings["JOBDIR"])
            self.control, self._injected = read_control(jobdir), InjectFolder(jobdir)
            if most := self.control.max_pages:
                logger.info("%s: max_pages %d holds, not CRAWL_MAX_PAGES", jobdir / CONTROL, most)
                self.options = replace(self.options, crawl_max_pages=most)

    @classmethod
    def visit(cls, settings: BaseSettings, given: str | None) -> NoReturn:
        """Raise InputError: whatever asks the web passes robots.txt, the waits of its owner and its opt-outs first."""
        raise InputError(
            "the live profile sends requests by `crawl influence` alone, which obeys robots.txt and politeness "
            "delays. To look at archived pages of a crawl, use the simulation profile with CORPUS=OUTPUT_DIR"
        )

    def rating(self, workers: Raters[PageRater], *, text: bool, signature: bool) -> RatePages:
        """Return the function that gives pages the ratings of their fetch."""
        unpacking = Unpacking(self._settings.getint("DOWNLOAD_MAXSIZE") or None, bool(self.options.body_limit))
        of_pages = OptOuts(self._settings).of_pages
        self.reader = Reader(workers, unpacking, of_pages, text=text, signature=signature)
        return self.reader.ratings

    def seeds_wait(self) -> bool:
        """Return whether there are files in JOBDIR/inject."""
        return self._injected is not None and bool(self._injected.waiting())

    def source(self, identity: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the fields of the archive on pages from the network."""
        known = "robots.txt, tdmrep.json, heads of responses and of HTML"
        if not self._settings.getbool("ROBOTSTXT_OBEY"):
            known = "heads of responses and of HTML; robots.txt and tdmrep.json are not requested"
        what = "recorded, and left out of exports" if self.options.opt_out_fetch else "not fetched, or not kept"
        note = f"by crawl4llm's table of {TABLE_DATE}: pages that opt out of training are {what}; signals of {known}"
        return from_the_network(self._settings, note)


def _leak(settings: BaseSettings) -> str | None:
    """Return the setting that bypasses the network's guard, or None. Raises InputError."""
    extensions = [path for path, order in settings.getwithbase("EXTENSIONS").items() if order is not None]
    guards = [_is_a(Network, "EXTENSIONS", path) for path in extensions if not str(path).startswith("scrapy.")]
    if not any(guards):
        return f"EXTENSIONS lacks {Network.__module__}.{Network.__qualname__}"
    handlers = settings.getwithbase("DOWNLOAD_HANDLERS")
    for scheme in ("http", "https"):
        path = handlers.get(scheme)
        if path is not None and not _is_a(WireHandler, "DOWNLOAD_HANDLERS", path):
            return f"DOWNLOAD_HANDLERS has {path} for {scheme}"
    return None


def _is_a(wanted: type, setting: str, path: Any) -> bool:
    """Return whether a component of a setting is of a class. Raises InputError if it cannot be loaded."""
    faults = (ImportError, NameError, TypeError, ValueError)
    with as_input_error(f"{setting}: {path} cannot be loaded", form="{} ({})", errors=faults):
        found = load_object(path)
    return isinstance(found, type) and issubclass(found, wanted)


def from_the_network(settings: BaseSettings, opt_outs: str) -> dict[str, str | None]:
    """Return the warcinfo fields on the source of pages, and the politeness, of a live crawl or the add-on;
    ``opt_outs`` says what is done about them."""
    return {
        "robots": "obeyed" if settings.getbool("ROBOTSTXT_OBEY") else "ignored",
        "opt-out": opt_outs,
        "http-header-user-agent": user_agent(settings) or None,
        "hostname": host_name(),
    }
