"""``scrapy trainscorer``: trains an influence model, a fastText classifier that separates good texts from ordinary
ones.

- ``train``: all steps, and the folder that holds the result whole or not at all
- ``examples``: training and held-out examples of them
- ``card``: the model's figures on held-out texts; the model card and its plot

DCLM's recipe, and what runs fastText, is :mod:`crawl4llm.tools._fit`.
"""
