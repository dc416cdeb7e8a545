"""``scrapy archive``: turns a crawl's archive into a dataset for others.

``finish``, ``check``, ``repair`` and ``purge`` are its actions. ``folder`` finds a dataset's files and the crawl that
wrote them; ``survey`` reads all records in parallel, into the database of ``facts``. ``rewrite`` writes files with some
of their records; ``copying`` makes copies, ``wacz`` a file for replay, ``clueweb12`` lists and fields in the form of
that dataset. ``lines`` reads indexes and logs. ``changes`` applies changes, all or nothing.
"""
