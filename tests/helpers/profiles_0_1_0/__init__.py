"""Scrapy profiles of this project: ``simulation`` (the default) and ``live``."""
