"""The fastText model of the demo web, trained on the spot by DCLM's recipe.

Source of the recipe: Li et al. 2024, DataComp-LM, section 4.4: documents known to be good against a sample of the
crawl, supervised fastText with word bigrams. The documents come from the generator of the web's texts, but from a
random stream of their own: none is in any web. Good ones are better on average, with much overlap, so that the scores
spread.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Final

from simulate.demo import web
from simulate.demo.content import Composer, clean_text, legal_pages
from simulate.demo.sentences import vocabulary
from simulate.demo.sites import FOREIGN_TONGUES
from simulate.demo.streams import stream
from simulate.demo.web import OutLink, Page, PageLinks
from simulate.demo.words import SUBJECTS

LABEL: Final = "__label__hq"
OTHER_LABEL: Final = "__label__cc"
_DOCUMENTS: Final = 2_500
"""Of each label."""
_FOREIGN_SHARE: Final = 0.1
_GOOD_QUALITY: Final = (6.0, 1.8)
_CRAWL_QUALITY: Final = (1.2, 2.2)
"""Parameters of the Beta distributions of quality."""
_GOOD_KINDS: Final = (web.ARTICLE, web.ARTICLE, web.ARTICLE, web.PRODUCT, web.THREAD)
_CRAWL_KINDS: Final = (*_GOOD_KINDS, web.PRODUCT, web.INDEX, web.LEGAL, web.CALENDAR, web.THIN)


def train_model(path: Path, seed: int) -> None:
    """Train a model and write it to ``path``. Equal seeds give equal bytes."""
    import fasttext

    with tempfile.TemporaryDirectory() as folder:
        examples = Path(folder) / "train.txt"
        examples.write_text("".join(_examples(stream(seed, "model"))), encoding="utf-8")
        model = fasttext.train_supervised(
            str(examples),
            wordNgrams=2,
            dim=8,
            bucket=50_000,
            minCount=2,
            epoch=5,
            lr=1.2,
            thread=1,
            seed=1,
            verbose=0,
        )
    model.save_model(str(path))


def _examples(random: Random) -> list[str]:
    lines = []
    for _ in range(_DOCUMENTS):
        good = _document(random, random.choice(_GOOD_KINDS), random.betavariate(*_GOOD_QUALITY), "en")
        language = random.choice(FOREIGN_TONGUES) if random.random() < _FOREIGN_SHARE else "en"
        other = _document(random, random.choice(_CRAWL_KINDS), random.betavariate(*_CRAWL_QUALITY), language)
        lines += [f"{LABEL} {good}\n", f"{OTHER_LABEL} {other}\n"]
    return lines


def _document(random: Random, kind: str, quality: float, language: str) -> str:
    """One document on a line of its own."""
    subject = random.randrange(len(SUBJECTS))
    words = vocabulary(subject, language)
    topic, theme = random.choice(words["thing"]), random.choice(words["process"])
    if kind == web.LEGAL:
        theme = random.choice(list(legal_pages(language)))
    if kind == web.CALENDAR:
        theme = f"{random.randrange(1990, 2023)}-{random.randrange(1, 13)}"
    page = Page(0, 0, None, kind, "", topic, language, topic, theme, quality, 0)
    listing = [OutLink(None, "", random.choice(words["thing"])) for _ in range(10 if kind == web.INDEX else 0)]
    blocks = Composer(random, page, subject, topic).blocks(PageLinks(listing=tuple(listing)))
    return " ".join(clean_text(blocks).split())
