"""The rules beside a model: its label for good pages, and the preparation of its training texts.

``scrapy trainscorer`` writes them as ``MODEL.json`` next to a model file MODEL: ``model.bin.json`` for ``model.bin``.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from crawl4llm.base.command_lines import command
from crawl4llm.base.errors import InputError
from crawl4llm.base.formats import require_format
from crawl4llm.base.input_files import given_path, read_json
from crawl4llm.base.version import __version__
from crawl4llm.scoring.scorer import ScoringOptions
from crawl4llm.scoring.text import EXTRACTORS

S = TypeVar("S", bound=ScoringOptions)

_KIND: Final = "crawl4llm model rules"
_FORMAT: Final = 1

TEXT_RULE: Final = "dclm"
"""Name of the rule that :func:`crawl4llm.scoring.fasttext_scorer.one_line` implements."""


@dataclass(frozen=True)
class ModelRules:
    """The choices of the training that a crawler must repeat."""

    label: str
    """The label whose probability is the influence score."""
    extractor: str | None
    """Extractor of the texts, a value of TEXT_EXTRACTOR; None if no text came from HTML."""
    digest: str
    """SHA-256 of the model file, in hex."""
    text_rule: str = TEXT_RULE
    """Rule that makes one line of a text."""

    def to_json(self) -> dict[str, Any]:
        """Return the content of the file."""
        return {
            "kind": _KIND,
            "format": _FORMAT,
            "label": self.label,
            "text_rule": self.text_rule,
            "extractor": self.extractor,
            "model_digest": f"sha256:{self.digest}",
            "made_by": f"crawl4llm {__version__}",
        }


def rules_path(model: Path) -> Path:
    """Return the path of a model file's rules."""
    return model.with_name(f"{model.name}.json")


def read_rules(model: Path) -> ModelRules | None:
    """Return the rules beside a model file, if any. Raises InputError if they are damaged or of another format."""
    path = rules_path(model)
    try:
        content = read_json(path)
        if isinstance(content, dict) and content.get("kind") == _KIND:
            make = f"remove it and set SCORER_LABEL, or {command('trainscorer', '--help')}"
            require_format(path, content.get("format"), _FORMAT, make)
        rules = _parse(content)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except (AttributeError, LookupError, TypeError, ValueError):
        raise InputError(
            f"{path} is damaged, or no file of `scrapy trainscorer`; put the one that came with {model.name} there, or "
            "remove it and set SCORER_LABEL"
        ) from None
    if rules.text_rule != TEXT_RULE or rules.extractor not in {None, *EXTRACTORS}:
        raise InputError(
            f"{path}: text_rule {rules.text_rule!r:.100} with extractor {rules.extractor!r:.100} is not known to "
            f"crawl4llm {__version__}; use a newer version"
        )
    return rules


def follow_rules(options: S, given: Container[str] = ()) -> S:
    """Return options with the rules beside SCORER_MODEL, except the ``given`` ones; raises like :func:`read_rules`."""
    if options.scorer_model is None:
        return options
    rules = read_rules(given_path(options.scorer_model))
    if rules is None:
        return options
    if "scorer_label" not in given:
        options = replace(options, scorer_label=rules.label)
    if "text_extractor" not in given and rules.extractor is not None:
        options = replace(options, text_extractor=rules.extractor)
    return options


def _parse(content: dict[str, Any]) -> ModelRules:
    kind, digest = content["model_digest"].split(":")
    rules = ModelRules(content["label"], content["extractor"], digest, content["text_rule"])
    is_text = isinstance(rules.label, str) and isinstance(rules.extractor, str | None)
    if content["kind"] != _KIND or kind != "sha256" or not (is_text and rules.label):
        raise ValueError("not the rules of a model")
    return rules
