"""``scrapy frontier JOBDIR``: the crawl that a JOBDIR holds, looked at and changed while it is paused.

``show`` prints what it holds, and exports the frontier as JSONL; ``verify`` checks it; ``change`` adds seeds, makes the
store smaller, and blocks domains, also while the crawl runs; ``purge`` takes a domain out. All of them work on
:class:`crawl4llm.crawl.stored_crawl.StoredCrawl`.
"""
