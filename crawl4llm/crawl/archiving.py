"""Opens the archive that the settings ask for, and tells it what crawl it is of."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import scrapy

from crawl4llm import __version__
from crawl4llm.options import Options
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, ArchiveWriter, NullArchive
from crawl4llm.warc.series import host_name

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)


def open_archive(directory: Path, options: Options, info: ArchiveInfo, at: ArchivePosition | None = None) -> Archive:
    """The archive in ``directory``, begun, or with ``at`` taken up again there. Raises InputError.

    Where ``info`` names no host it is a simulation's: each page is stored whole, and no file closes by its age.
    """
    if not options.warc_enabled:
        return NullArchive()
    live = info.host is not None
    if options.warc_max_age and not live:
        logger.warning("WARC_MAX_AGE is not heeded: a simulation has no clock")
    form = ArchiveFormat(
        compression=options.warc_compression,
        text=options.warc_text,
        revisits=options.warc_revisits if live else 0,
        max_age=options.warc_max_age if live else 0,
        fsync=options.warc_fsync,
        credentials=options.archive_credentials,
    )
    return ArchiveWriter(directory, info, options.warc_max_bytes, at, form)


def warcinfo_fields(
    options: Options, source: Mapping[str, str | None], *, policy: str, extractor: str | None, model_digest: str
) -> dict[str, str]:
    """What the warcinfo records say, as far as there is something to say; ``source``: where the pages come from."""
    fields = {
        "software": f"crawl4llm/{__version__} Scrapy/{scrapy.__version__}",
        "operator": options.warc_operator,
        **source,
        "policy": policy,
        "extractor": extractor,
        "model-digest": model_digest,
    }
    return {name: value for name, value in fields.items() if value}


def from_the_network(settings: BaseSettings) -> dict[str, str | None]:
    """Where the pages of a live crawl come from, or of the add-on's, and by what manners."""
    return {
        "robots": "obeyed" if settings.getbool("ROBOTSTXT_OBEY") else "ignored",
        "opt-out": "signals in response heads are noted with each page",
        "http-header-user-agent": settings.get("USER_AGENT"),
        "hostname": host_name(),
    }
