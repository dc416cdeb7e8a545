"""Classifiers of texts (MIXTURE): fastText models whose labels are classes of texts, with the wanted shares.

A file names them (docs/mixture.md): ``{"topic": {"model": "topic.bin", "shares": {"__label__law": 0.3, "*": 0.7}}}``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from crawl4llm.base.command_lines import docs
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path, read_json
from crawl4llm.scoring.fasttext_file import inspect_model
from crawl4llm.scoring.fasttext_scorer import FastTextModel

REST: Final = "*"
"""Stands for all other labels of a model."""
_NAME: Final = re.compile(r"[\w.-]{1,60}")
_ROUNDING: Final = 1e-6
"""Most deviation of the sum of shares from 1."""


class Classifier(FastTextModel):
    """Gives a text the class whose label has the greatest probability; labels without their own share are one class,
    the last one."""

    _fault = "MIXTURE: {} gives no class: {}; train it again"

    def __init__(self, name: str, model: Path, shares: Mapping[str, float]) -> None:
        """``shares`` by label. Raises InputError for the model, and ValueError for impossible shares."""
        super().__init__(inspect_model(model, f"model {name}:"))
        self.name = name
        if not self.file.finite:
            raise ValueError(f"model {name}: {model} is damaged: it has weights that are NaN")
        named = [label for label in shares if label != REST]
        if unknown := [label for label in named if label not in self.file.labels]:
            known = ", ".join(self.file.labels[:50])
            raise ValueError(f"{unknown[0]!r:.200} is not a label of {model}; its labels are: {known}")
        has_rest = len(named) < len(self.file.labels)
        if REST in shares and not has_rest:
            raise ValueError(f"{name}: {REST!r} stands for the labels that are not named, and all are")
        self.classes: tuple[str, ...] = (*named, *([REST] if has_rest else []))
        self.shares = tuple(shares.get(label, 0.0) for label in self.classes)

    def classify(self, text: str) -> int | None:
        """Return the number of a text's class; None if it is blank. Raises InputError if the model gives NaN."""
        if not text.strip():
            return None
        label = next((label for _, label in self.labels(text, 1)), REST)
        return self.classes.index(label) if label in self.classes else len(self.classes) - 1


def read_classifiers(path: Path) -> tuple[Classifier, ...]:
    """Return the classifiers of a file. Raises InputError."""
    try:
        content = read_json(path)
    except OSError as error:
        raise InputError(f"MIXTURE {path} cannot be read: {error.strerror}") from None
    except ValueError:
        raise InputError(f"MIXTURE {path} is no JSON file in UTF-8; `{docs('mixture')}` has an example") from None
    with as_input_error(f"MIXTURE {path}", errors=(InputError, ValueError)):
        if not isinstance(content, dict) or not content:
            raise ValueError("it is no object with a classifier or more")
        return tuple(_classifier(name, given, path.parent) for name, given in content.items())


def _classifier(name: str, given: Any, folder: Path) -> Classifier:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r:.200} is no name of letters, digits, dots, hyphens and underscores")
    if not isinstance(given, dict) or given.keys() != {"model", "shares"}:
        raise ValueError(f"{name} is no object with just model, shares")
    model, shares = given["model"], given["shares"]
    if not isinstance(model, str) or not model:
        raise ValueError(f"{name}: model is no path")
    if not isinstance(shares, dict) or not all(_is_share(share) for share in shares.values()):
        raise ValueError(f"{name}: shares is no object of labels with numbers from 0 to 1")
    if abs((total := math.fsum(shares.values())) - 1) > _ROUNDING:
        raise ValueError(f"{name}: shares sum to {total:g}, not to 1; {REST!r} stands for all other labels")
    return Classifier(name, folder / given_path(model), shares)


def _is_share(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value <= 1
