"""``scrapy archive``: turns a crawl's archive into a dataset for others.

``check`` has the actions ``check`` and ``finish``, ``removal`` the actions ``repair`` and ``purge``. ``folder`` finds a
dataset's files and the crawl that wrote them, and applies changes, all or nothing; ``survey`` reads all records in
parallel, into the database of ``facts``. ``rewrite`` writes files with some of their records, and lists of files in
ClueWeb12's form; ``copies`` writes copies, and a file for replay.
"""
