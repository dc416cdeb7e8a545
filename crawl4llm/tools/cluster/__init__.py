"""``scrapy cluster``: a crawl by several workers, looked at and taken out of its storage.

``merge`` writes it as one run folder; ``compact`` puts its archive together; ``status`` says how far it is, and asks
workers to end; ``verify`` checks that nothing is lost or there twice. All of them read
:class:`crawl4llm.cluster.history.History`.
"""
