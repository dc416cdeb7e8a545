"""Crawl: Algorithm 1 of Craw4LLM without Scrapy.

- ``algorithm``: the steps of the algorithm, beside the paper; ``crawl``: its loop; ``driven``: what the scheduler sees;
  ``opening``: puts a crawl together.
- ``scope``: which links and redirects are followed, once each, and domains blocked during the crawl. Two layers
  (``layer``) stand before the frontier: ``gate``, in which parts may set documents aside, and ``sited_frontier``, in
  which sites that never answer hold up no others.
- ``turns``: the schedule of owners, and the clock by which they wait.
- ``reorder_buffer``: answers that wait for their turn (``answer_spool`` keeps them on disk), and the part of a batch
  that N cut off; ``answering``: answers for known pages, without a request.
- ``page_writer``: archive and crawl log; ``counting``: figures and states; ``ends``: reasons for its end.
- ``seeds``: seeds from a file, or drawn; ``web``, ``fetched_web``: the source of the pages.
- ``control``: commands to a running crawl; ``request_files``: the log of requests.
- ``commits``, ``job``, ``jobdir``, ``pieces``, ``store_check``, ``stored_crawl``: state that outlives the process, in
  JOBDIR.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
