"""``scrapy evaluate --contest``: policies crawl the same webs from the same seeds, and are ranked by their findings.

- ``contest``: from the command's arguments to files in a folder
- ``track``, ``entrants``: the webs, seeds and policies of a contest
- ``web``, ``subject``: a corpus in memory, and the data that all crawls of it share
- ``crawling``, ``running``: one crawl and its findings; all crawls, each in a process of its own, saved one by one
- ``results``, ``ranking``: all numbers as one JSON file; means, their errors, paired tests, the ranking
- ``page``: the report and the table to paste, made of the results alone
"""
