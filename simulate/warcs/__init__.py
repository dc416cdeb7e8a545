"""WARC collections as a corpus."""

from crawl4llm.moved import moved_objects

__getattr__ = moved_objects(__name__)
