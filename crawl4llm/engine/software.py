"""The name and version of the software, for archives."""

import scrapy

from crawl4llm.base.version import __version__

SOFTWARE = f"crawl4llm/{__version__} Scrapy/{scrapy.__version__}"
"""The software field of archives."""
