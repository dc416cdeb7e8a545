"""ClueWeb22: pages, links and the URL index in its on-disk format."""

from crawl4llm.moved import moved_objects

__getattr__ = moved_objects(__name__)
