"""``scrapy corpus``: the corpus that ``CORPUS`` names, looked at and prepared.

``show`` prints a document, random keys, or seeds; ``build`` makes a corpus's index, a ClueWeb22 tree, the demo web, or
ranks. They reach corpora through :mod:`simulate` only. ``known`` makes files of known URLs, texts and links:
``known_sources`` reads what it is given.
"""
