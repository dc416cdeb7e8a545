"""``scrapy frontier JOBDIR``: the crawl that a JOBDIR holds, looked at and changed while it is paused.

``show`` prints what it holds, ``verify`` checks it, ``export`` writes the frontier as JSONL; ``change`` adds seeds and
makes the store smaller, ``purge`` takes a domain out. All of them work on
:class:`crawl4llm.crawl.stored_crawl.StoredCrawl`. ``block`` blocks a domain, also while the crawl runs.
"""
