"""The settings of a past run, for commands that look at it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from scrapy.settings import SETTINGS_PRIORITIES, BaseSettings

from crawl4llm.base.errors import InputError
from crawl4llm.base.received import refuse_code
from crawl4llm.base.run_folder import SETTINGS
from crawl4llm.options import Options, setting_name

_OF_THIS_PROCESS = {
    *("OUTPUT_DIR", "DRY_RUN", "CRAWL_SEED", "SCORING_WORKERS", "SCORE_CACHE", "PROGRESS_BAR"),
    *("EXECUTOR", "CRAWL_PARTS"),
}
"""Settings that do not say what a page is or what it scores."""


def take_over(settings: BaseSettings, facts: Mapping[str, Any], run: object) -> None:
    """Set what a run's ``settings.json`` holds, except what was given on the command line; ``run`` names the run.

    A run's folder may come from anybody, so nothing that it names is imported: a dotted path counts only where the
    command line or the user's own settings have it too. Raises InputError that says so.
    """
    values = facts.get("settings", {})
    if not isinstance(values, dict):
        raise InputError(f"{run}: {SETTINGS} is damaged: its settings are no JSON object")
    for option in fields(Options):
        name = setting_name(option)
        value = values.get(name)
        overruled = (settings.getpriority(name) or 0) > SETTINGS_PRIORITIES["spider"]  # on the command line
        if value is None or name in _OF_THIS_PROCESS or overruled:
            continue
        imports = option.metadata["imports"]
        if imports is not None and imports(value):
            refuse_code(run, SETTINGS, name, value, settings.get(name))
        settings.set(name, value, priority="spider")
