"""The order of a live crawl that is taken up and whose command line names none."""

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
BEFORE: Final = "parent_first"


def settle_policy(settings: BaseSettings) -> None:
    """Replace the live profile's policy by `parent_first` where a crawl that is taken up was begun so.

    That was the default of earlier versions, or where they had no learner. What the command line names is left alone.
    """
    priority = settings.getpriority("URL_POLICY") or 0
    if settings.get("URL_POLICY") != DEFAULT or priority > SETTINGS_PRIORITIES["project"]:
        return
    jobdir = settings.get("JOBDIR")
    of_job = read_json(Path(jobdir) / JOB).get("settings") if jobdir else None
    begun = of_job.get("URL_POLICY") if isinstance(of_job, dict) else None
    if begun == BEFORE:
        logger.info("The crawl in JOBDIR %s was begun with URL_POLICY %s, and goes on so", jobdir, begun)
        settings.set("URL_POLICY", begun, priority=priority)
