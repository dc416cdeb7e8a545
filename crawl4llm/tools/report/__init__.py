"""``scrapy report JOBDIR``: the requests of a live crawl, from its request log, and the documents that it did not
fetch, from its log of failures.

``requests`` reads the former; ``overview`` sums it up by day and owner; ``owner`` has every request to one owner;
``refusals`` counts documents that were not fetched, or refused; ``simulation`` reports them alone.
"""
