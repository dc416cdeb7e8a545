"""``crawl4llm live``: a whole live crawl by one command."""

from __future__ import annotations

import argparse
import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from scrapy.commands import ScrapyCommand

from crawl4llm.base.command_lines import command, docs, given_settings
from crawl4llm.base.domains import owner_of
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path
from crawl4llm.base.tables import Part, Rows, facts
from crawl4llm.base.terminal import print_lines
from crawl4llm.base.urls import site_of
from crawl4llm.commands._starting import Starting, tell

if TYPE_CHECKING:
    from crawl4llm.crawl import Seeds
    from crawl4llm.engine import Faults
    from crawl4llm.options import Options

_OUT: Final = "crawls/live"
_PLACEHOLDER: Final = "crawl4llm (+https://example.org/)"
"""The user agent by which the rest is checked if the contact is wrong; nothing is sent then."""
_SHOWN: Final = 100
"""Registrable domains that --dry-run lists."""


class Command(Starting, ScrapyCommand):
    """Checks all that can be checked, then crawls; the same command resumes the crawl."""

    kind = "live"
    epilog = """\
examples:
  crawl4llm live seeds.txt --contact https://example.org/crawler --scorer model.bin --dry-run
  crawl4llm live https://example.org/ --contact crawler@example.org --scorer model.bin --pages 1000 --within-sites

The same command resumes the crawl after Ctrl-C, SIGTERM or a crash.
More: `crawl4llm docs first-live-crawl`, `crawl4llm docs politeness`, `crawl4llm docs settings`."""
    not_by_s: ClassVar = {
        "OUTPUT_DIR": "--out DIR",
        "JOBDIR": "--out DIR, which has it in DIR/job",
        "DRY_RUN": "--dry-run",
    }

    def syntax(self) -> str:
        return "SEEDS [SEEDS ...] --contact URL [options]"

    def short_desc(self) -> str:
        return "Crawl the live web, politely"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}, from SEEDS: a file with one URL a line, or one or more URLs. Settings are those of "
            "the project's live profile or, in a folder without a project, of the one that comes with crawl4llm. "
            "Before the first request the command checks seeds, contact, scorer, disk and network, and says what is "
            "wrong, a line each."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        contact = "page or mail address of who runs the crawl; webmasters find it in the user agent"
        parser.add_argument("--contact", metavar="URL", help=contact)
        within = "follow links within the registrable domain of their page only (CRAWL_SCOPE=domain)"
        parser.add_argument("--within-sites", action="store_true", help=within)
        out = f"folder of the crawl: log, archive, and its state in DIR/job (default: {_OUT})"
        parser.add_argument("--out", metavar="DIR", default=_OUT, help=out)
        dry = "print who would be asked and how, send nothing"
        parser.add_argument("--dry-run", action="store_true", help=dry)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        # here, as Scrapy imports every command to run one
        from crawl4llm.crawl import LiveCorpus
        from crawl4llm.engine import JOB, Faults, check_disk, check_start, take_extractor
        from crawl4llm.live import Rules, check_network

        assert self.settings is not None
        faults, out = Faults(), given_path(opts.out)
        self.refuse_by_s(faults, opts)
        seeds = _seeds(args, faults)
        contact = self._contact(opts.contact, faults)
        self.give(CRAWL_MAX_PAGES=opts.pages, SCORER_MODEL=opts.scorer, OUTPUT_DIR=out, JOBDIR=out / JOB)
        self.give(CRAWL_SCOPE="domain" if opts.within_sites else None)
        notes: list[str] = []
        with faults.noted():
            if extractor := take_extractor(self.settings):
                notes.append(f"TEXT_EXTRACTOR is {extractor}, on whose texts the model of --scorer was trained")
        options, found = check_start(self.settings, seeds, LiveCorpus(), out, faults)
        with faults.noted():
            check_disk(out, options)
        if found is not None and not opts.dry_run and not self.settings.getbool("HTTPPROXY_ENABLED"):
            with faults.noted():
                check_network(Rules.of(options), found.keys)
        if faults.lines:
            self.exitcode = tell(faults)
        elif opts.dry_run:
            assert found is not None
            self.exitcode = print_lines(self._dry_run(out, options, found))
        else:
            if contact is not None and options.dns_hosts is None:
                notes += self._contact_warning(contact)
            again = partial(command, "live", *args, **given_settings(self.settings))
            self.crawl(out, seeds, again, notes)

    def _contact(self, given: str | None, faults: Faults) -> str | None:
        """Put the contact into the user agent, and return it; without one the user agent has to have one."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import with_addons
        from crawl4llm.live import check_identity, contact_in, with_contact

        settings = self.settings
        assert settings is not None
        try:
            if given is not None:
                contact = contact_in(given)
                agent = str(settings.get("USER_AGENT") or "").strip() if settings.getpriority("USER_AGENT") else ""
                self.give(USER_AGENT=with_contact(agent or "crawl4llm", contact))
                check_identity(with_addons(settings))
                return contact
            check_identity(with_addons(settings))
        except InputError as error:
            missing = (
                "--contact is missing: webmasters must be able to reach who runs the crawl; give a page on your "
                "crawler, such as https://example.org/crawler, or a mail address"
            )
            faults.lines.append(missing if given is None else str(error))
            headers = {**settings.getdict("DEFAULT_REQUEST_HEADERS"), "User-Agent": _PLACEHOLDER}
            settings.set("DEFAULT_REQUEST_HEADERS", headers, priority="cmdline")
            self.give(USER_AGENT=_PLACEHOLDER, ROBOTSTXT_USER_AGENT="crawl4llm")
        return None

    def _contact_warning(self, contact: str) -> Iterator[str]:
        """Yield a line if the page on the crawler does not answer."""
        from crawl4llm.live import fault_of_page, user_agent  # here, as Scrapy imports every command to run one

        assert self.settings is not None
        if contact.lower().startswith("http") and (fault := fault_of_page(contact, user_agent(self.settings))):
            yield f"The page of --contact, {contact}, cannot be read by webmasters: {fault}"

    def _dry_run(self, out: Path, options: Options, seeds: Seeds) -> Iterator[Part]:
        """Yield who would be asked, and how."""
        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import JOB
        from crawl4llm.live import crawler_name, user_agent

        settings = self.settings
        assert settings is not None
        obeys, name = settings.getbool("ROBOTSTXT_OBEY"), crawler_name(settings)
        links = (
            "followed within the registrable domain of their page" if options.crawl_scope == "domain" else "followed"
        )
        begun = (out / JOB / "job.json").exists()
        owners, sites = Counter[str](), defaultdict[str, set[str]](set)
        for url in seeds.keys:
            owner = owner_of(url) or url
            owners[owner] += 1
            sites[owner].add(site_of(url))
        hosts = len(set().union(*sites.values()))
        yield "Nothing is sent: this is what the crawl would do."
        yield from facts(
            {
                "user agent": user_agent(settings),
                "robots.txt": f"asked for at each site first, and obeyed as {name}" if obeys else "not asked for",
                "delay": _delay(settings.getfloat("DOWNLOAD_DELAY")),
                "at once": _at_once(settings),
                "links": links,
                "pages": f"{options.crawl_max_pages:,} at most",
                "scorer": options.scorer_model or options.scorer,
                "profile": self.profile,
                "output": f"{out}{', where the crawl goes on' if begun else ''}",
            }
        )
        asked = f"seeds: {len(seeds.keys):,}; their registrable domains: {len(owners):,}; their sites: {hosts:,}"
        given = seeds.counts["seeds/given"]
        if given > len(seeds.keys):
            asked = f"{asked} ({given - len(seeds.keys):,} seeds more are malformed, unknown or given twice)"
        rows = ((owner, count, _some(sorted(sites[owner]))) for owner, count in owners.most_common(_SHOWN))
        yield Rows("domains", ("registrable_domain", "seeds", "sites"), rows, asked)
        if len(owners) > _SHOWN:
            yield f"and {len(owners) - _SHOWN:,} more registrable domains"


def _seeds(args: Sequence[str], faults: Faults) -> Path | Sequence[str] | None:
    """Return the file of seeds, or the URLs; None if they are wrong, which is noted."""
    from crawl4llm.crawl import LiveCorpus  # here, as Scrapy imports every command to run one

    wanted = "give a file with one URL a line, or URLs, such as https://example.org/"
    if not args:
        faults.lines.append(f"SEEDS are missing: {wanted}")
        return None
    if len(args) == 1 and os.path.lexists(path := given_path(args[0])) and args[0]:
        return path
    corpus = LiveCorpus()
    wrong = [given for given in args if "://" not in given or corpus.resolve(given) is None]
    for given in wrong:
        if "://" in given:
            faults.lines.append(f"SEEDS {given!r:.200} is no http or https URL; {wanted}")
        else:
            none = "there is no such file, and it is no URL" if len(args) == 1 else "it is no URL"
            faults.lines.append(f"SEEDS {given!r:.200}: {none}; {wanted}")
    return None if wrong else args


def _delay(seconds: float) -> str:
    more = docs("politeness")
    return f"{seconds:g} s or more from the end of one request to a registrable domain to the next (`{more}`)"


def _at_once(settings: Any) -> str:
    requests = settings.getint("CONCURRENT_REQUESTS")
    return (
        f"one request to a registrable domain, {requests:,} in all"
        if settings.getint("CRAWL_BATCH_SIZE") == 0
        else (f"{settings.getint('CONCURRENT_REQUESTS_PER_DOMAIN'):,} requests to a host, {requests:,} in all")
    )


def _some(sites: Sequence[str]) -> str:
    return ", ".join(sites[:3]) + (f" and {len(sites) - 3:,} more" if len(sites) > 3 else "")
