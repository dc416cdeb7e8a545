"""``scrapy corpus``: the corpus that ``CORPUS`` names, looked at and prepared.

``actions`` has all actions but ``known``. They reach corpora through :mod:`simulate` only. ``known`` makes files of
known URLs, texts and links: ``known_sources`` reads what it is given.
"""
