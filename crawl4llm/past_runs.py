"""Settings of a run that is over, taken over by who looks at it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from crawl4llm.options import Options, setting_name

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

_OF_THIS_PROCESS = {"OUTPUT_DIR", "DRY_RUN", "CRAWL_SEED", "SCORING_WORKERS", "PROGRESS_BAR"}
"""Settings that do not say what a page is or what it scores."""


def take_over(settings: BaseSettings, facts: Mapping[str, Any]) -> None:
    """Set what a run's ``settings.json`` holds, except what was given on the command line."""
    values = facts.get("settings", {})
    for option in fields(Options):
        name = setting_name(option)
        if values.get(name) is not None and name not in _OF_THIS_PROCESS:
            settings.set(name, values[name], priority="spider")
