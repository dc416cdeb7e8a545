"""The order of a live crawl whose command line names none: `link`, or what stands in for it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Final

from scrapy.settings import SETTINGS_PRIORITIES

from crawl4llm.base.run_folder import read_json
from crawl4llm.crawl.jobdir import JOB

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

DEFAULT: Final = "link"
STAND_IN: Final = "parent_first"


def settle_policy(settings: BaseSettings) -> None:
    """Replace the live profile's policy by `parent_first` where it cannot run here, or a crawl was begun so.

    A crawl that is taken up goes on with its own: it was begun where there was no learner, or by a version whose
    default was another. What the command line names is left alone.
    """
    priority = settings.getpriority("URL_POLICY") or 0
    if settings.get("URL_POLICY") != DEFAULT or priority > SETTINGS_PRIORITIES["project"]:
        return
    jobdir = settings.get("JOBDIR")
    of_job = read_json(Path(jobdir) / JOB).get("settings") if jobdir else None
    begun = of_job.get("URL_POLICY") if isinstance(of_job, dict) else None
    if begun == STAND_IN:
        logger.info("The crawl in JOBDIR %s was begun with URL_POLICY %s, and goes on so", jobdir, begun)
        settings.set("URL_POLICY", begun, priority=priority)
