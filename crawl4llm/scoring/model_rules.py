"""The rules beside a model: which label to ask it for, and what the texts were that it learned from.

``scrapy trainscorer`` writes them as ``MODEL.json`` next to a model file MODEL: ``model.bin.json`` for ``model.bin``.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm import __version__
from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import read_json
from crawl4llm.scoring.text import EXTRACTORS

if TYPE_CHECKING:
    from crawl4llm.options import Options

_FORMAT: Final = "crawl4llm model rules 1"

TEXT_RULE: Final = "dclm"
"""The name of what :func:`crawl4llm.scoring.fasttext_scorer.one_line` does."""


@dataclass(frozen=True)
class ModelRules:
    """What a crawler must do as the training did."""

    label: str
    """The label whose probability is the influence score."""
    extractor: str | None
    """What took the texts from HTML, as TEXT_EXTRACTOR has it; None where no text came from HTML."""
    digest: str
    """SHA-256 of the model file, in hex."""
    text_rule: str = TEXT_RULE
    """What makes one line of a text."""

    def to_json(self) -> dict[str, Any]:
        """The content of the file."""
        return {
            "format": _FORMAT,
            "label": self.label,
            "text_rule": self.text_rule,
            "extractor": self.extractor,
            "model_digest": f"sha256:{self.digest}",
            "made_by": f"crawl4llm {__version__}",
        }


def rules_path(model: Path) -> Path:
    """Where the rules of a model file lie."""
    return model.with_name(f"{model.name}.json")


def read_rules(model: Path) -> ModelRules | None:
    """The rules beside a model file; None where there are none.

    Raises InputError where the file is damaged, or says what this version cannot do.
    """
    path = rules_path(model)
    try:
        rules = _parse(read_json(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, LookupError, TypeError):
        raise InputError(
            f"{path} is damaged, or no file of `scrapy trainscorer`; put the one that came with {model.name} there, or "
            "remove it and set SCORER_LABEL"
        ) from None
    if rules.text_rule != TEXT_RULE or rules.extractor not in {None, *EXTRACTORS}:
        raise InputError(
            f"{path}: text_rule {rules.text_rule!r} with extractor {rules.extractor!r} is not known to crawl4llm "
            f"{__version__}; use a newer version"
        )
    return rules


def follow_rules(options: Options, given: Container[str] = ()) -> Options:
    """The options with label and extractor of the rules beside SCORER_MODEL, but for the settings that were given.

    Raises InputError as :func:`read_rules` does.
    """
    if options.scorer_model is None:
        return options
    rules = read_rules(Path(options.scorer_model).expanduser())
    if rules is None:
        return options
    if "SCORER_LABEL" not in given:
        options = replace(options, scorer_label=rules.label)
    if "TEXT_EXTRACTOR" not in given and rules.extractor is not None:
        options = replace(options, text_extractor=rules.extractor)
    return options


def _parse(content: dict[str, Any]) -> ModelRules:
    kind, digest = content["model_digest"].split(":")
    rules = ModelRules(content["label"], content["extractor"], digest, content["text_rule"])
    is_text = isinstance(rules.label, str) and isinstance(rules.extractor, str | None)
    if content["format"] != _FORMAT or kind != "sha256" or not (is_text and rules.label):
        raise ValueError("not the rules of a model")
    return rules
