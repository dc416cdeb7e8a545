"""``scrapy corpus``: the corpus that ``CORPUS`` names, looked at and prepared.

``show`` prints a document, or random keys; ``build`` makes a corpus's index, a ClueWeb22 tree, or the demo web;
``ranks`` computes harmonic centrality, ``bound`` what a policy could know beforehand. They reach corpora through
:mod:`simulate` only. ``known`` makes files of known URLs and texts from given files: ``known_rows`` reads them,
``known_files`` sorts and writes.
"""
