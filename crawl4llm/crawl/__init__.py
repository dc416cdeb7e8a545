"""Crawl: Algorithm 1 of Craw4LLM without Scrapy.

- ``algorithm``: the steps of the algorithm, beside the paper; ``crawl``: its loop; ``driven``: what the scheduler sees;
  ``opening``: puts a crawl together.
- ``scope``: which links and redirects are followed, once each, and what is blocked while it runs. Before the frontier
  stand (``layer``) ``gate``, by which parts may set documents aside, and ``sited_frontier``: sites that never answer
  hold up no others.
- ``turns``: who is told of leases, and the time by which owners wait.
- ``reorder_buffer``: answers that wait for their turn (``answer_spool`` keeps them on disk), and what N cut off.
- ``page_writer``: archive and crawl log; ``counting``: figures and states; ``ends``: why it ends.
- ``seeds``: seeds from a file, or drawn; ``web``, ``fetched_web``: what the pages are fetched from.
- ``control``: what the operator of a running crawl asks for; ``request_files``: the log of requests.
- ``commits``, ``job``, ``jobdir``, ``pieces``, ``store_check``, ``stored_crawl``: state that outlives the process, in
  JOBDIR.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
