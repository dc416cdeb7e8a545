"""Scorers: M of the paper, from a page's main text to a score.

- ``scorer``: the protocol of scorers, those of the project, and the settings of scoring. ``fasttext_scorer`` and
  ``length`` are scorers; the former can also identify languages by a model of the user's. Give your own scorer by its
  dotted path.
- ``rating``: the work on each page; ``workers``: processes that do it; ``score_cache``: known scores.
- ``text``, ``choosing``, ``faster_trafilatura``: main text from HTML; ``signatures``, ``classifiers``, ``topic``,
  ``languages``, ``lines``: other properties of a text; ``linked``: the share of it in links.
- ``fasttext_file``, ``model_rules``: model files, and the rules beside them.
- ``passes``: one pass over all pages of a corpus.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
