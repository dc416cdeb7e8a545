"""The parts of the demo web: words, text, sites, pages, links, HTML, model, traits. Start at ``demo.py``."""

from crawl4llm.moved import moved_objects

__getattr__ = moved_objects(__name__)
