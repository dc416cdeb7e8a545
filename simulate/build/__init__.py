"""Build: a corpus in ClueWeb22 format, made of WARC files."""

from crawl4llm.moved import moved_objects

__getattr__ = moved_objects(__name__)
