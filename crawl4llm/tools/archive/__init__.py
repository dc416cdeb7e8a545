"""``scrapy archive``: a crawl's archive as a dataset that is handed on.

``finish``, ``check``, ``repair`` and ``purge`` are its actions. ``folder`` finds a dataset's files and the crawl that
wrote them; ``survey`` reads all records in parallel, into the database of ``facts``. ``rewrite`` writes files with some
of their records; ``copying`` makes copies, ``wacz`` a file for replay, ``clueweb12`` lists and fields as that dataset
has them. ``lines`` reads indexes and logs. What is changed is changed by ``changes``, all or nothing.
"""
