"""``scrapy corpus bound``: scores by which a policy would crawl that had read a quarter of the web beforehand.

fastText learns from a quarter of the pages whether a page belongs to the oracle set. It knows the words of the page's
URL, the anchors of the links to it, and the scores of the pages that link to it. Four such models, each of another
quarter, score the pages; a page's score is the mean of those of the three models that have not seen it.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from crawl4llm.base.command_lines import command, given_settings
from crawl4llm.base.errors import InputError
from crawl4llm.base.pages import Corpus
from crawl4llm.base.tables import Fact, Part
from crawl4llm.base.terminal import wants_bar
from crawl4llm.base.urls import host_of
from crawl4llm.base.whole_files import check_new_file, write_new
from crawl4llm.options import read_options
from crawl4llm.policies import bound_text
from crawl4llm.scoring import FastTextScorer, PageRater
from crawl4llm.tools._action import Action
from crawl4llm.tools._fit import NEGATIVE, POSITIVE, Recipe, fit
from crawl4llm.tools.evaluate.contest.web import MemoryWeb, best_tenth
from crawl4llm.tools.evaluate.report import check_installed
from crawl4llm.tools.evaluate.survey import Survey
from simulate import open_rater

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_FOLDS: Final = 4
_FEWEST: Final = 100
"""Pages of a web: a quarter of fewer tells nothing."""
_MOST_PARENTS: Final = 20
_STEPS: Final = 10
_RECIPE: Final = Recipe(word_ngrams=1, dim=32, epochs=25, rate=0.5, seed=0)
_WORD: Final = re.compile(r"[A-Za-z]+|[0-9]+|[^\x00-\x7f]+")
_DIVIDES: Final = re.compile(r"[\s\0]+")
"""Characters that end a word in fastText, or in Python."""


def bound_of(web: MemoryWeb, influence: Mapping[str, float | None], *, progress: bool = False) -> dict[str, float]:
    """Return the score of each page, from 0 to 1, by models that have not seen it.

    ``influence`` has the scores of all pages. The same web and scores give the same numbers. Raises InputError if
    nothing can be learnt, because there are few pages, or all have one score.
    """
    if len(influence) < _FEWEST:
        raise InputError(
            f"no bound can be learnt of {web.title}: it has {len(influence):,} pages, fewer than {_FEWEST}"
        )
    scores = {key: score or 0.0 for key, score in influence.items()}
    if len(set(scores.values())) == 1:
        raise InputError(f"no bound can be learnt of {web.title}: all of its pages have the same influence score")
    keys, oracle = sorted(scores), best_tenth(scores)
    random.Random(0).shuffle(keys)
    steps = _steps(scores)
    words = {key: _text(web, key, steps) for key in keys}
    found: dict[str, list[float]] = {key: [] for key in keys}
    with tempfile.TemporaryDirectory() as folder:
        examples, model = Path(folder, "examples.txt"), Path(folder, "model.bin")
        for fold in range(_FOLDS):
            seen = dict.fromkeys(keys[fold::_FOLDS])
            unseen = [key for key in keys if key not in seen]
            likely = [0.0] * len(unseen)
            if not oracle.isdisjoint(seen):
                lines = (f"{POSITIVE if key in oracle else NEGATIVE} {words[key]}\n" for key in seen)
                examples.write_text("".join(lines), encoding="utf-8")
                fit(examples, model, _RECIPE.fasttext(), progress=progress)
                likely = FastTextScorer(model, POSITIVE).score([words[key] for key in unseen])
            for key, score in zip(unseen, likely, strict=True):
                found[key].append(score)
    return {key: fmean(given) for key, given in found.items()}


def _steps(scores: Mapping[str, float]) -> dict[str, int]:
    """Return in which tenth of all pages a page's score is."""
    ordered = sorted(scores, key=lambda key: (scores[key], key))
    return {key: _STEPS * place // len(ordered) for place, key in enumerate(ordered)}


def _text(web: MemoryWeb, key: str, steps: Mapping[str, int]) -> str:
    """Return a page's words on one line, as fastText reads them."""
    words = (_DIVIDES.sub("_", word) for word in _words(web, key, steps))
    return " ".join(words).encode(errors="backslashreplace").decode()


def _words(web: MemoryWeb, key: str, steps: Mapping[str, int]) -> Iterator[str]:
    """Yield the words that are known of a page before its fetch, each with its source, such as ``url:``."""
    url = web.page(key).url
    host, path = host_of(url), _path(url)
    yield f"host:{host}"
    folders = path.split("/")[:-1]
    yield from (f"folder:{host}{'/'.join(folders[: end + 1])}" for end in range(1, len(folders)))
    yield from (f"url:{word.lower()}" for word in _WORD.findall(path))
    links = web.inlinks(key)[:_MOST_PARENTS]
    yield from sorted({f"anchor:{word.lower()}" for link in links for word in _WORD.findall(link.anchor)})
    of_parents = [steps[str(link.key)] for link in links if link.key in steps]
    yield from (f"parent:{step}" for step in of_parents)
    if of_parents:
        yield f"parents:{round(fmean(of_parents))}"


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


# -- the command -------------------------------------------------------------------------------------------------------


@contextmanager
def opened_web(
    name: str, settings: BaseSettings
) -> Iterator[tuple[MemoryWeb, dict[str, float | None], Corpus, PageRater]]:
    """Open the corpus that settings name; yield its readable pages in memory, and the influence of each, None without
    one. Raises InputError."""
    options = read_options(settings)
    corpus, rater = open_rater(settings)
    with closing(corpus):
        corpus.check()
        corpus.require("outlinks")
        influence = Survey(corpus, options).scores(rater, options.scorer).influence.tolist()
        known = {key: None if math.isnan(score) else score for key, score in zip(corpus.keys(), influence, strict=True)}
        web = MemoryWeb.read(name, corpus, rater.text, bar=wants_bar(options.progress_bar))
        yield web, {key: known[key] for key in web.keys()}, corpus, rater


def _run(settings: BaseSettings, opts: argparse.Namespace) -> Iterator[Part]:
    if opts.out is None:
        raise InputError("give the file to write: --out FILE")
    check_new_file(opts.out)
    check_installed()
    bar = wants_bar(read_options(settings).progress_bar)
    with opened_web("the corpus", settings) as (web, known, corpus, rater):
        scores = bound_of(web, known, progress=bar)
        write_new(opts.out, bound_text(scores, corpus.identity(), rater.scorer.digest), "the scores")
    yield Fact("pages", len(scores), width=7)
    yield Fact("scores", opts.out, width=7)
    given = given_settings(settings) | {"URL_POLICY": "bound", "BOUND_SCORES": opts.out}
    yield f"Next: {command('crawl', 'influence', simulation=True, **given)}"


BOUND = Action(
    "Write a score for each page to --out FILE (.gz: compressed), for BOUND_SCORES. The scores stand for what a policy "
    "knows that has read a quarter of the corpus beforehand. fastText learns it from the words of URLs and anchors, "
    "and from the influence of the pages that link to a page. No model scores a page that it has seen. The command "
    "first scores all pages by SCORER, and holds their links in memory. It needs the extra "
    "evaluate (also takes --out).",
    _run,
)
