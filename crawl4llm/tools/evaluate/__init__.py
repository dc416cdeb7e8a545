"""``scrapy evaluate``: measures the pages of finished crawls, in a report of figures and tables.

- ``evaluate``: from the output directories of runs to a report
- ``runs``, ``documents``, ``graph``, ``survey``: runs, and numbers of all pages of their corpus, cached by
  :mod:`crawl4llm.scoring.passes`
- ``columns``: those numbers on disk
- ``measures``, ``buffer``: all that is computed of them; Limited Buffer Crawl with the estimates that a policy
  would have made later
- ``bound``, ``shares``: what a policy could know beforehand, and the share of the gap to it that policies close
- ``overview``, ``coverage``, ``ordering``, ``correlations``: the sections of the report, made of ``figures``
- ``report``: the report on disk
- ``contest``: ``scrapy evaluate --contest``, which crawls webs by policies itself, and ranks them
"""
