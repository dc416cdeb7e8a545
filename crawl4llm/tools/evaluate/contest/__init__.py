"""``scrapy evaluate --contest``: policies crawl the same webs from the same seeds, and are ranked by their findings.

- ``contest``: from the command's arguments to files in a folder
- ``track``: the webs and seeds of a contest, and the data of a web that all crawls of it share; ``web``: a corpus in
  memory
- ``crawling``: the policies, a crawl by one with its findings, and all crawls as jobs, each in a process of its own
- ``results``: all numbers as one JSON file; the report and the table to paste, made of that file alone
"""
