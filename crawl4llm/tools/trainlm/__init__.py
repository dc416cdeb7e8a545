"""``scrapy trainlm``: trains small language models on the pages of crawls, and measures them on held-out texts.

- ``trainlm``: all steps, from the texts of runs in crawl order to the folder of a plan with its results
- ``plan``: a plan, which is all that the trainer reads, with the tokenizer and sizes of models
- ``trainer``: the trainer, a folder that needs nothing of this project
- ``results``: what the models have learnt, and the same comparison by n-grams, without training
"""
