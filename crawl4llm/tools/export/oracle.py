"""The oracle set of the corpus that some runs crawled: the best tenth of all its pages (Craw4LLM, section 3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crawl4llm.base.errors import InputError
from crawl4llm.past_runs import take_over

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings


def oracle_threshold(settings: BaseSettings, runs: Sequence[Path]) -> float:
    """The influence from which a page belongs to the oracle set.

    Settings on the command line count, then those of the first run. The corpus is scored once, and the scores are kept
    for ``scrapy evaluate`` too. Raises InputError where the runs are not of one corpus and model, or it is not here.
    """
    try:
        from crawl4llm.tools.evaluate.evaluate import check_same
        from crawl4llm.tools.evaluate.measures import Population, oracle_of
        from crawl4llm.tools.evaluate.runs import read_runs
        from crawl4llm.tools.evaluate.survey import Survey
    except ImportError:
        raise InputError("--oracle needs SciPy; pip install 'crawl4llm[evaluation]'") from None
    from crawl4llm.options import read_options
    from simulate.web import open_rater

    first = read_runs(runs)[0]
    settings = settings.copy()
    take_over(settings, first.facts, first.path)
    corpus, rater = open_rater(settings)
    try:
        corpus.check()
        check_same(first, corpus, rater)
        options = read_options(settings)
        scores = Survey(corpus, options).scores(rater, options.scorer)
        return oracle_of(Population(scores.influence, len(corpus))).threshold.value
    finally:
        corpus.close()
