"""Crawl: Algorithm 1 of Craw4LLM without Scrapy.

- ``algorithm``: the algorithm, line by line.
- ``reorder_buffer``: what waits: answers for their turn (``answer_spool`` keeps them on disk), and what N cut off.
- ``page_writer``: archive, crawl log and counters; ``scope``: which links and redirects are followed.
- ``seeds``: seeds from a file, or drawn; ``web``: what the pages are fetched from.
- ``commits``, ``job``, ``jobdir``, ``store_check``, ``stored_crawl``: state that outlives the process, in JOBDIR.
- ``request_meta``: what travels in a request's meta.
"""
