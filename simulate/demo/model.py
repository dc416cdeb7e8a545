"""The fastText model of the demo web, trained on the spot by DCLM's recipe.

Source of the recipe: Li et al. 2024, DataComp-LM, section 4.4: documents known to be good against a sample of the
crawl, supervised fastText with word bigrams. The crawl is a small web of its own; the good documents are its articles,
written anew with more quality. They overlap, so that the scores spread.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from simulate.demo.sites import Page, stream
from simulate.demo.text import clean_text
from simulate.demo.web import Web

LABEL, OTHER_LABEL = "__label__hq", "__label__cc"
_PAGES, _HOSTS = 2_500, 50  # of the small web; there are as many good documents
_GOOD_QUALITY: Final = (6.0, 1.8)  # parameters of the Beta distribution of quality


def train_model(path: Path, seed: int) -> None:
    """Train a model and write it to ``path``. Equal seeds give equal bytes."""
    import fasttext  # for the one process of a build that trains the model

    random, web = stream(seed, "model"), Web(_PAGES, _HOSTS, f"model of {seed}")
    articles = [page for page in web.pages if page.article and web.sites[page.site].language == "en"]

    def example(label: str, page: Page) -> str:
        return f"{label} {' '.join(clean_text(web.blocks(page)).split())}\n"

    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "train.txt").open("w", encoding="utf-8") as file:
        for page in web.pages:
            good = replace(random.choice(articles), quality=random.betavariate(*_GOOD_QUALITY))
            file.writelines([example(LABEL, replace(good, text_of=good.number)), example(OTHER_LABEL, page)])
        file.flush()
        options = {"wordNgrams": 2, "dim": 8, "bucket": 50_000, "minCount": 2, "epoch": 5, "lr": 1.2}
        model = fasttext.train_supervised(file.name, **options, thread=1, seed=1, verbose=0)
    model.save_model(str(path))
