"""``scrapy report JOBDIR``: what a live crawl sent, by its request log.

``requests`` reads the log; ``overview`` sums it up by day and owner; ``owner`` has every request to one owner.
"""
