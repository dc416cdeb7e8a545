"""Crawl: Algorithm 1 of Craw4LLM without Scrapy."""

from crawl4llm.moved import moved_objects

__getattr__ = moved_objects(__name__)
