"""``scrapy evaluate``: measures the pages of finished crawls, in a report of figures and tables.

- ``evaluate``: from the output directories of runs to a report
- ``runs``, ``documents``, ``graph``, ``survey``: runs, and numbers of all pages of their corpus, cached by
  :mod:`crawl4llm.scoring.passes`, and while they are used on disk
- ``measures``, ``ranking``: all that is computed of them; which policy is best, and how sure that is
- ``bound``, ``shares``: what a policy could know beforehand, and the share of the gap to it that policies close
- ``verdict``, ``coverage``, ``correlations``, ``ordering``, ``overview``: the sections of the report
- ``figures``, ``plot``, ``report``: the report as data, its drawings, its files
- ``contest``: ``scrapy evaluate --contest``, which crawls webs by policies itself, and ranks them
"""
