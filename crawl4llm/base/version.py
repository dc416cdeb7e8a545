"""The version of crawl4llm."""

__version__ = "0.1.0"
