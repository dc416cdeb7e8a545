"""``scrapy crawl``, with an exit status that tells whether the work was done."""

from __future__ import annotations

import argparse
import sys

from scrapy.commands.crawl import Command as ScrapyCrawl

from crawl4llm.base.command_lines import usage
from crawl4llm.base.errors import InputError
from crawl4llm.base.terminal import complain, end_when_interrupted
from crawl4llm.commands._crawling import Crawling
from crawl4llm.commands._help import HelpFormatter
from crawl4llm.commands._visiting import Visiting

_EPILOG = """\
the spider influence:
  -a seeds=FILE         one URL a line (live), or one id or URL a line (simulation);
                        a simulation without it draws CRAWL_SEEDS random documents

the ten settings that matter, by -s NAME=VALUE:
  CORPUS=PATH           simulation: demo, a ClueWeb22 tree, or WARC files
  SCORER_MODEL=PATH     the fastText model that scores pages
  URL_POLICY=NAME       the order of the frontier: influence, link, random, ...
  CRAWL_MAX_PAGES=N     pages at which the crawl ends
  CRAWL_BATCH_SIZE=N    pages an iteration; 0: the best document next
  OUTPUT_DIR=DIR        folder of log and archive; default: the next number in crawls/
  JOBDIR=DIR            keeps the state; the same command resumes the crawl
  CRAWL_SCOPE=domain    follow links within the registrable domain of their page only
  USER_AGENT=TEXT       live: 'NAME (+URL)', who crawls and how to reach them
  DOWNLOAD_DELAY=N      live: seconds between two requests to a registrable domain

examples:
  {program} crawl influence -s CORPUS=demo -s CRAWL_MAX_PAGES=500
  SCRAPY_PROJECT=live {program} crawl influence -a seeds=seeds.txt -s SCORER_MODEL=model.bin \\
      -s USER_AGENT='our-crawler (+https://example.org/crawler)' -s JOBDIR=jobs/1

`crawl4llm live` and `crawl4llm simulate` do the same with fewer settings to give, and need no project.
All settings: `crawl4llm docs settings`."""


class Command(Visiting, ScrapyCrawl):
    """Runs the ``influence`` spider on a run that is opened, and found good, before the reactor starts.

    Scrapy's own command exits with 0 after a CloseSpider at start-up, a lost worker or Ctrl-C. Other spiders get
    pages of the corpus.
    """

    def long_desc(self) -> str:
        return (
            "Run a spider. `crawl influence` crawls a corpus or, with SCRAPY_PROJECT=live in the environment, the web, "
            "in the order of the influence score."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add options; Scrapy calls this first of the command that is to run."""
        super().add_options(parser)
        parser.epilog, parser.formatter_class = _EPILOG.format(program=usage()), HelpFormatter
        end_when_interrupted()

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Check Scrapy's own settings, before the first of them is used."""
        super().process_options(args, opts)
        if args != ["influence"]:  # whose values are checked first
            return

        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import check_values, log_in_json

        assert self.settings is not None
        try:
            check_values(self.settings)
        except InputError as error:
            complain(error)
            sys.exit(1)
        log_in_json(self.settings)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.crawler_process is not None
        if args != ["influence"]:
            spiders = self.crawler_process.spider_loader.list()
            if len(args) == 1 and args[0] not in spiders:
                complain(f"there is no spider {args[0]}; known are: {', '.join(spiders)}")
                self.exitcode = 1
            else:
                self.visit(super().run, args, opts)
            return
        try:
            seeds = self._seeds(opts.spargs)
        except InputError as error:
            complain(error)
            self.exitcode = 1
        else:
            from crawl4llm.engine import begun_again  # here, as Scrapy imports every command to run one

            assert self.settings is not None
            self.exitcode = Crawling(self.crawler_process, seeds, begun_again(self.settings, seeds)).begin()

    @staticmethod
    def _seeds(spider_args: dict[str, str]) -> str | None:
        """Return the seeds file, if one is given. Raises InputError for none, and for what Scrapy would pass over."""
        for name in spider_args:
            if name != "seeds":
                raise InputError(f"-a {name}= is not known; there is -a seeds=FILE, and settings are -s NAME=VALUE")
        seeds = spider_args.get("seeds")
        if seeds is not None and not seeds.strip():
            raise InputError("-a seeds= is empty; give a file with one id or URL a line, or leave it out")
        return seeds
