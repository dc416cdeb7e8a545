"""What wrote an archive."""

import scrapy

from crawl4llm.base.version import __version__

SOFTWARE = f"crawl4llm/{__version__} Scrapy/{scrapy.__version__}"
"""What wrote an archive."""
