"""``scrapy export``: from archives to the input of pretraining pipelines.

An export goes through stages, each of which leaves in the work folder what the next one needs, so that one that was
killed goes on where it was. ``sources`` lists the documents of archives as ``rows``: ``archive_source`` by the index of
our own ones. ``preparing`` finds out, in worker processes, what selecting needs and the index does not tell: the text
of pages that have none yet, scores, lengths. ``selecting`` chooses and orders, in tasks ``selecting_on_disk``.
``shards`` writes what was chosen, in the ``formats`` that pipelines read; ``reading`` reads texts and what is said of
pages. ``folder`` is the output directory, ``card`` its dataset card, ``export`` the whole.
"""
