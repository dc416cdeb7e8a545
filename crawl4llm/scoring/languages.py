"""Language identification, for texts of archives that do not say which language they are in."""

from __future__ import annotations

from pathlib import Path

from crawl4llm.scoring.fasttext_file import inspect_model
from crawl4llm.scoring.fasttext_scorer import FastTextModel

_LEAST = 0.5
"""Probability from which a language is told."""
_PREFIX = "__label__"


class FastTextLanguages(FastTextModel):
    """A fastText classifier of languages, such as lid.176 (Joulin et al. 2016), whose labels are ``__label__CODE``.

    Raises InputError where the file is no whole model.
    """

    _fault = "--language-model {} tells nothing: {}"

    def __init__(self, path: Path) -> None:
        super().__init__(inspect_model(path, "--language-model"))

    def language(self, text: str) -> str | None:
        """Return the code of the most probable language, if its probability is 0.5 or more."""
        return next((label.removeprefix(_PREFIX) for _, label in self.labels(text, 1, _LEAST)), None)
