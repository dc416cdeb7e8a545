"""``scrapy export``: from archives to the input of pretraining pipelines.

Each stage of an export leaves the input of the next one in the work folder, so that a killed export continues.
``sources`` lists the documents of archives as ``rows``; ``archive_source`` uses the index of our own archives.
``preparing`` computes facts that the index lacks, in worker processes: the text of pages without one, scores, lengths.
``selecting`` chooses and orders, in tasks ``selecting_on_disk``. ``shards`` writes the chosen documents in the
``formats`` that pipelines read; ``reading`` reads texts and the metadata of pages. ``folder`` is the output directory,
``card`` its dataset card, ``export`` the whole.
"""
