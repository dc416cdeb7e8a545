"""Crawl: Algorithm 1 of Craw4LLM without Scrapy."""
