"""``crawl4llm simulate``: a whole simulation by one command."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any, ClassVar

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from crawl4llm.base.command_lines import command, given_settings, usage
from crawl4llm.base.input_files import given_path
from crawl4llm.commands._starting import Starting, tell


class Command(Starting, ScrapyCommand):
    """Checks all that can be checked, then crawls a corpus; the same command resumes the crawl."""

    kind = "simulation"
    epilog = """\
examples:
  crawl4llm simulate demo --pages 500
  crawl4llm simulate demo --pages 500 --policy random
  crawl4llm simulate crawls/live --scorer model.bin --seeds crawls/live/seeds.txt -s SIMULATION_TEXT=extracted

The same command resumes the crawl after Ctrl-C, SIGTERM or a crash. `-s DRY_RUN=1` says what a crawl would take.
More: `crawl4llm docs simulation-and-live`, `crawl4llm docs policies`, `crawl4llm docs settings`."""
    not_by_s: ClassVar = {"OUTPUT_DIR": "--out DIR", "JOBDIR": "--out DIR, which has it in DIR/job", "CORPUS": "CORPUS"}

    def syntax(self) -> str:
        return "CORPUS [options]"

    def short_desc(self) -> str:
        return "Crawl a corpus, as if it were the web"

    def long_desc(self) -> str:
        return (
            f"{self.short_desc()}. CORPUS is `demo`, the root of a ClueWeb22 tree, WARC files (a file, a folder, a "
            "pattern), or the output folder of a live crawl. Nothing is sent to the network. Settings are those of the "
            "project's simulation profile or, in a folder without a project, of the one that comes with crawl4llm."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        policy = "order of the frontier (URL_POLICY; default: influence)"
        parser.add_argument("--policy", metavar="P", help=policy)
        seeds = "file with one id or URL a line; default: random documents of the corpus, CRAWL_SEEDS in number"
        parser.add_argument("--seeds", metavar="FILE", help=seeds)
        out = "folder of the crawl: log, archive, and its state in DIR/job (default: crawls/CORPUS-POLICY)"
        parser.add_argument("--out", metavar="DIR", help=out)

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError(f"usage: {usage('simulate', self.syntax())}", print_help=False)

        # here, as Scrapy imports every command to run one
        from crawl4llm.engine import JOB, Faults, check_start
        from crawl4llm.options import Options

        assert self.settings is not None
        faults, corpus = Faults(), args[0]
        self.refuse_by_s(faults, opts)
        self.give(CORPUS=corpus, URL_POLICY=opts.policy, CRAWL_MAX_PAGES=opts.pages, SCORER_MODEL=opts.scorer)
        out = (
            _out(corpus, self.settings.get("URL_POLICY") or Options().url_policy)
            if opts.out is None
            else given_path(opts.out)
        )
        self.give(OUTPUT_DIR=out, JOBDIR=out / JOB)
        seeds = None if opts.seeds is None else given_path(opts.seeds)
        check_start(self.settings, seeds, None, out, faults)
        if faults.lines:
            self.exitcode = tell(faults)
            return

        def again(**settings: Any) -> str:
            assert self.settings is not None
            given = given_settings(self.settings) | settings
            del given["CORPUS"]
            named = [] if seeds is None else ["--seeds", seeds]
            return command("simulate", corpus, *named, simulation=True, **given)

        self.crawl(out, seeds, again)


def _out(corpus: str, policy: Any) -> Path:
    """Return the folder of a corpus and a policy, the same for the same command."""
    names = [re.sub(r"[^\w.-]+", "-", name).strip("-.") for name in (Path(corpus).absolute().name, str(policy))]
    return Path("crawls", f"{names[0] or 'corpus':.100}-{names[1] or 'policy':.50}")
