"""Crawl: Algorithm 1 of Craw4LLM without Scrapy.

- ``algorithm``: the algorithm, line by line; ``crawl_state``: what it works on; ``turns``: whom it tells of leases, and
  the time by which owners wait.
- ``reorder_buffer``: what waits: answers for their turn (``answer_spool`` keeps them on disk), and what N cut off.
- ``page_writer``: archive, crawl log and counters; ``scope``: which links and redirects are followed;
  ``known_urls``: what is known and not fetched again.
- ``budgets``: what owners and URL prefixes may have fetched; ``budgeted_frontier`` heeds it; ``linked_twice``: by which
  they tell sites from mazes.
- ``seeds``: seeds from a file, or drawn; ``web``: what the pages are fetched from; ``fetched_web``: a base for
  webs of which no page is known before its fetch.
- ``control``, ``inject_folder``: what the operator of a running crawl asks for; ``request_files``: the log of requests.
- ``commits``, ``job``, ``jobdir``, ``store_check``, ``stored_crawl``: state that outlives the process, in JOBDIR.
"""
