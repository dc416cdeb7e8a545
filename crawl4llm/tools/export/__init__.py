"""``scrapy export``: from archives to the input of pretraining pipelines.

The steps of a document, each of which leaves the input of the next one in the work folder:

- ``sources`` lists it; ``archive_source`` does so by the index and the crawl log of our own archives;
- ``filters`` computes its measures in worker processes, and applies the rules on single documents;
- ``selecting`` compares it with the others, chooses and orders;
- ``shards`` writes it, in one of the ``formats`` that pipelines read.

``documents`` has its row in the work folder, and reads its page and text. ``folder`` is the output directory with its
dataset card, ``export`` the pipeline.
"""
