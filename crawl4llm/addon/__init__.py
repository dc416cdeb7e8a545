"""Add-on: the crawl of another Scrapy project, ordered by influence."""

from crawl4llm.addon.addon import Addon as Addon
