"""``scrapy trainlm``: trains small language models on the pages of crawls, and measures them on held-out texts.

- ``trainlm``: all steps, and the folder of a plan with its results
- ``texts``: the texts of runs in crawl order, and those of targets
- ``models``, ``plan``: tokenizer and sizes of models; a plan, which is all that the trainer reads
- ``trainer``: the trainer, a file that needs nothing of this project
- ``results``: what the models have learnt, and the same comparison by n-grams, without training
"""
