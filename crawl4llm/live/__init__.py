"""Live: the real web, fetched politely and archived as it was sent.

- ``web``: the live web, as a run opens it.
- ``fetching``: makes a page of a downloaded answer, and follows redirects; ``verdicts``: says how a document ends if
  its download failed.
- ``bodies``: limits how much is taken of an answer; ``reading``: has pages read in worker processes as they come.
- ``wire``, ``answers``, ``capturing``: HTTP messages as they went over the wire, kept for the archive.
- ``pace``: sends each owner one request at a time, and no sooner than it is due, by ``places`` and ``backoff``.
- ``network``: looks hosts up; ``addresses``: which addresses a crawl may connect to.
- ``reachable``: checks of network and contact before the first request.
- ``identity``: who the crawl says it is; ``recent``: bounded tables of the latest entries.
- ``robots``: asks for robots.txt and holds requests to it; ``robots_copies``: what is known of each site's, and for
  how long; ``robots_store``: the same on disk.
- ``steering``: lets a crawl heed its operator while it runs; ``request_log``: what was sent to whom.
- ``stopping``: a polite stop; ``stalls``: says why nothing is fetched.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
