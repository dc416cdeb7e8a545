"""Language identification, for texts of archives that do not say which language they are in."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from crawl4llm.base.errors import InputError
from crawl4llm.scoring.fasttext_file import inspect_model
from crawl4llm.scoring.fasttext_scorer import FastTextModel, one_line

_LEAST = 0.5
"""Probability from which a language is told."""
_PREFIX = "__label__"


class LanguageIdentifier(Protocol):
    """Tells the language of texts."""

    @property
    def digest(self) -> str:
        """What decides its answers, in hex."""

    def language(self, text: str) -> str | None:
        """Return the language's code; None where it is not clear."""


class FastTextLanguages(FastTextModel):
    """A fastText classifier of languages, such as lid.176 (Joulin et al. 2016), whose labels are ``__label__CODE``.

    Raises InputError where the file is no whole model.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(inspect_model(path, "--language-model"))

    def language(self, text: str) -> str | None:
        """Return the code of the most probable language, if its probability is 0.5 or more."""
        line = one_line(text)
        if not line:
            return None
        try:
            predictions = self.predict(line + "\n", 1, _LEAST, "strict")
        except RuntimeError as error:  # fastText's "Encountered NaN."
            raise InputError(f"--language-model {self.file.path} tells nothing: {error}") from None
        return next((label.removeprefix(_PREFIX) for _, label in predictions), None)
