"""Keeps the crawl from the domains of BLOCKLISTS."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from crawl4llm.base.errors import Why
from crawl4llm.base.reasons import BLOCKLIST
from crawl4llm.parts.blocklists import Settings
from crawl4llm.parts.blocklists.lists import Blocklists, publish
from crawl4llm.parts.part import Part, Refusal

logger = logging.getLogger(__name__)


class BlocklistsPart(Part):
    """See the module. A live crawl may change its ``lists`` while it runs."""

    name = "blocklists"

    def __init__(self, options: Settings) -> None:
        super().__init__(options)
        self.lists = Blocklists(options.blocklists)
        for fault in self.lists.faults:
            logger.warning("%s", fault)

    def identity(self) -> Mapping[str, Any]:
        return {"blocklists": [one.digest for one in self.lists.lists]}

    def blocks(self, url: str) -> Refusal | None:
        """A list is told with its digest, which is its name in ``OUTPUT_DIR/blocklists/``."""
        if (listed := self.lists.find(url)) is None:
            return None
        return Refusal(BLOCKLIST, Why(f"BLOCKLISTS {listed.name}, line {listed.line} (sha256:{listed.digest})"))

    def publish(self, output: Path, *, fsync: bool) -> None:
        publish(self.lists.lists, output, fsync=fsync)
