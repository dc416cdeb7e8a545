"""The archive of a crawl, as its settings want it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from crawl4llm.options import Options
from crawl4llm.warc import Archive, ArchiveFormat, ArchiveInfo, ArchivePosition, NullArchive

logger = logging.getLogger(__name__)


def open_archive(directory: Path, options: Options, info: ArchiveInfo, at: ArchivePosition | None = None) -> Archive:
    """Open the archive in ``directory``: begin it, or with ``at`` go on there. Raises InputError. Where ``info`` names
    no host it is a simulation's: each page is stored whole, and no file closes by its age."""
    if not options.warc_enabled:
        return NullArchive()
    # a crawl that archives nothing needs none of it
    from crawl4llm.warc import ArchiveWriter

    live = info.host is not None
    if options.warc_max_age and not live:
        logger.warning("WARC_MAX_AGE is not heeded: a simulation has no clock")
    form = ArchiveFormat(
        compression=options.warc_compression,
        text=options.warc_text,
        revisits=options.warc_revisits if live else 0,
        max_age=options.warc_max_age if live else 0,
        credentials=options.archive_credentials,
    )
    return ArchiveWriter(directory, info, options.warc_max_bytes, at, form)


def warcinfo_fields(
    options: Options,
    software: str,
    source: Mapping[str, str | None],
    *,
    policy: str,
    extractor: str | None,
    model_digest: str,
) -> dict[str, str]:
    """Return the fields of the warcinfo records that have a value. ``software`` names this project and Scrapy with
    their versions; ``source`` says where the pages come from."""
    fields = {
        "software": software,
        "operator": options.warc_operator,
        **source,
        "policy": policy,
        "extractor": extractor,
        "model-digest": model_digest,
    }
    return {name: value for name, value in fields.items() if value}
