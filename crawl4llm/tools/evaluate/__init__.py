"""``scrapy evaluate``: measures the pages of finished crawls, in a report of figures and tables.

- ``evaluate``: from the output directories of runs to a report; its sections on the runs and their corpus
- ``runs``, ``survey``: runs, and numbers of all pages of their corpus, cached by :mod:`crawl4llm.scoring.passes`
- ``documents``: those numbers on disk while they are used, their order, and the links between documents
- ``verdict``, ``coverage``, ``correlations``, ``ordering``: the other sections, with all that is computed for them
- ``ranking``: which policy is best, and how sure that is
- ``bound``, ``shares``: what a policy could know beforehand, and the share of the gap to it that policies close
- ``figures``, ``report``: the report as data, and as files with drawings
- ``contest``: ``scrapy evaluate --contest``, which crawls webs by policies itself, and ranks them
"""
