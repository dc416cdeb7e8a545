"""``scrapy corpus bound``: what a policy could know that had read a quarter of the corpus beforehand, for the policy
``bound``."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.errors import InputError
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.whole_files import check_new_file, write_new
from crawl4llm.options import read_options
from crawl4llm.policies import bound_text
from crawl4llm.tools._action import Action
from simulate import open_rater

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if opts.out is None:
        raise InputError("give the file to write: --out FILE")
    check_new_file(opts.out)
    # what needs an extra, and is slow to import
    from crawl4llm.tools.evaluate.report import check_installed

    check_installed()
    # what check_installed() has looked for
    from crawl4llm.tools.evaluate.bound import bound_of
    from crawl4llm.tools.evaluate.contest.track import read_web

    options = read_options(settings)
    corpus, rater = open_rater(settings)
    try:
        corpus.check()
        corpus.require("outlinks")
        web, known = read_web("the corpus", corpus, rater, options)
        scores = bound_of(web, {key: known[key] for key in web.keys()}, progress=wants_bar(options.progress_bar))
        write_new(opts.out, bound_text(scores, corpus.identity(), rater.scorer.digest), "the scores")
    finally:
        corpus.close()
    yield Fact("pages", len(scores), width=7)
    yield Fact("scores", opts.out, width=7)
    given = given_settings(settings) | {"URL_POLICY": "bound", "BOUND_SCORES": opts.out}
    yield f"Next: {command('crawl', 'influence', simulation=True, **given)}"


BOUND = Action(
    "Write a score for each page to --out FILE (.gz: compressed), for BOUND_SCORES. It is what a policy could know "
    "that had read a quarter of the corpus beforehand. fastText learns it from the words of URLs and anchors, and from "
    "the influence of the pages that link to a page. No model scores a page that it has seen. The command first scores "
    "all pages by SCORER, and holds their links in memory. It needs the extra evaluate (also takes --out).",
    _run,
)
