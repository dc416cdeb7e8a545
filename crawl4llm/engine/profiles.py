"""The settings of ``crawl4llm live`` and ``crawl4llm simulate``: those of the project, or those that come with the
package."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from scrapy.addons import AddonManager
from scrapy.settings import BaseSettings, Settings
from scrapy.utils.conf import get_config

from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.engine.webs import web_class

LIVE, SIMULATION = "live", "simulation"
_OF_PACKAGE: Final = "crawl4llm.profiles"
_OF_PROJECT: Final = {LIVE: "live", SIMULATION: "default"}
"""The profile of each kind in the ``scrapy.cfg`` of a project."""


def profile_for(kind: str, loaded: Settings) -> tuple[Settings, str]:
    """Return new settings for live crawls or simulations, and the name of their profile.

    They are the ``loaded`` ones if these are of that kind, as with SCRAPY_PROJECT=clueweb12. Else they are those of the
    project's profile, or, without a project, of the one that comes with the package. Raises InputError if the profile
    cannot be loaded.
    """
    if kind_of(loaded) == kind:
        return loaded.copy(), "the project's"
    config, name = get_config(), _OF_PROJECT[kind]
    if config.has_option("settings", name):
        module = config.get("settings", name)
        found = _read(module)
        if kind == LIVE or kind_of(found) == kind:  # the default profile of another project is for something else
            return found, module
    module = f"{_OF_PACKAGE}.{kind}"
    return _read(module), module


def kind_of(settings: Settings) -> str | None:
    """Return whether settings are for live crawls or for simulations; None if they are for neither."""
    with suppress(InputError):
        return web_class(with_addons(settings)).profile
    return None


def with_addons(settings: BaseSettings) -> BaseSettings:
    """Return a copy of settings to which add-ons have added what they do when a crawl begins. Raises InputError."""
    copy = settings.copy()
    faults = (ImportError, NameError, TypeError, ValueError)
    with as_input_error(
        f"ADDONS = {dict(settings.getdict('ADDONS'))!r} cannot be loaded", form="{} ({})", errors=faults
    ):
        AddonManager.load_pre_crawler_settings(copy)
    return copy


def _read(module: str) -> Settings:
    settings = Settings()
    with as_input_error(
        f"profile {module} of scrapy.cfg cannot be loaded", form="{} ({})", errors=(ImportError, SyntaxError)
    ):
        settings.setmodule(module, priority="project")
    return settings
