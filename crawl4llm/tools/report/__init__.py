"""``scrapy report JOBDIR``: what a live crawl sent, by its request log, and what it left alone, by its log of failures.

``requests`` reads the former; ``overview`` sums it up by day and owner; ``owner`` has every request to one owner;
``refusals`` counts what was not fetched, or refused.
"""
