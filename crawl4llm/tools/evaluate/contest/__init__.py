"""``scrapy evaluate --contest``: policies crawl the same webs from the same seeds, and are ranked by their findings.

- ``contest``: from the command's arguments to files in a folder
- ``track``: the webs, seeds and policies of a contest
- ``web``, ``subject``: a corpus in memory, and the data that all crawls of it share
- ``crawling``, ``running``: one crawl and its findings; all crawls as jobs, each in a process and a file of its own
- ``results``, ``page``: all numbers as one JSON file; the report and the table to paste, made of that file alone
"""
