"""``scrapy export``: from archives to the input of pretraining pipelines.

An export goes through stages, each of which leaves in the work folder what the next one needs, so that one that was
killed goes on where it was. ``sources`` lists the documents of archives (``archive_source``: by the index of our own
ones; ``warc_source``: of any origin) as ``rows``. ``preparing`` finds out, in worker processes, what selecting needs
and the index does not tell: the text of pages that have none yet, scores, lengths. ``selecting`` chooses and orders by
the columns of ``table``. ``shards`` writes what was chosen, in the ``formats`` that pipelines read. ``folder`` is the
output directory, ``export`` the whole.
"""
