"""Simulate: corpora that stand in for the web in a simulated crawl.

``opening``: opens the corpus that ``CORPUS`` names, makes its index, and what else tools ask for.
``web``, ``middleware``: the web that a simulation is opened on, and what answers Scrapy's requests from its corpus.
``indexes``: what indexes of corpora are made of.
``clueweb22``, ``warcs``: the two formats of corpora. ``build``: writes any corpus as a ClueWeb22 tree.
``centrality``: the harmonic centrality of a corpus's pages.
``demo``: a small made-up web for first steps.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
