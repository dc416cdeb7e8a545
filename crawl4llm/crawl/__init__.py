"""Crawl: Algorithm 1 of Craw4LLM without Scrapy.

- ``algorithm``: the algorithm, line by line; ``raised_n``: what it keeps for the case that N is raised.
- ``reorder_buffer``: answers on their way back into crawl order; ``answer_spool`` keeps them on disk.
- ``page_writer``: archive, crawl log and counters; ``scope``: which links and redirects are followed.
- ``seeds``: seeds from a file, or drawn; ``web``: what the pages are fetched from.
- ``commits``, ``job``, ``jobdir``, ``store_check``, ``stored_crawl``: state that outlives the process, in JOBDIR.
- ``request_meta``: what travels in a request's meta.
"""
