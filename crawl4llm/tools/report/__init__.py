"""``scrapy report JOBDIR``: the requests of a live crawl, from its request log, and the documents that it did not
fetch, from its log of failures.

``requests`` reads the former, and sums it up by day and owner, or has every request to one owner; ``refusals`` counts
documents that were not fetched, or refused, which is all there is of a simulation.
"""
