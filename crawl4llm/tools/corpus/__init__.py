"""``scrapy corpus``: the corpus that ``CORPUS`` names, looked at and prepared.

``show`` prints a document, or random keys; ``build`` makes what is built of a corpus or in its place: its index, a
ClueWeb22 tree, the demo web; ``ranks`` computes harmonic centrality. They reach corpora through
:mod:`simulate` only. ``known`` makes files of known URLs and texts of what one has: ``known_rows`` reads them,
``known_files`` sorts and writes.
"""
