"""crawl4llm: a Scrapy crawler that fetches first the pages that matter most for LLM pretraining."""

from crawl4llm.moved import install

__version__ = "0.1.0"

install()
