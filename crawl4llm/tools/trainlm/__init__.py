"""``scrapy trainlm``: trains small language models on the pages of crawls, and measures them on held-out texts.

- ``trainlm``: all steps, and the folder of a plan with its results
- ``texts``: the texts of runs in crawl order, and those of targets
- ``tokens``, ``plan``: the tokenizer; a plan, which is all that the trainer reads
- ``sizes``: the models
- ``trainer``: the trainer, a file that needs nothing of this project
- ``estimate``: the same comparison by n-grams, without training
- ``results``: what the models have learnt, for the command, ``scrapy evaluate`` and contests
"""
