"""Live: the real web, fetched politely and archived as it was sent.

- ``web``: what a run on the live web is opened with.
- ``fetching``: makes a page of what was downloaded; ``verdicts``: how a document ends that could not be downloaded.
- ``wire``, ``capturing``: HTTP messages as they went over the wire, kept for the archive.
- ``pace``: sends each owner one request at a time, and no sooner than it is due; ``retry_after``: the header field.
- ``middlewares``: Scrapy's redirects and robots.txt, made fit; ``stopping``: a polite stop; ``stalls``: says why
  nothing is fetched.
"""
