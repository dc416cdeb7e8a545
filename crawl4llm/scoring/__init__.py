"""Scorers: M of the paper, from a page's main text to a score.

- ``scorer``: what a scorer is, those that come with the project, and the settings of scoring; ``fasttext_scorer``,
  which tells languages too by a model of the user's, and ``length`` are scorers. One of your own is given by its dotted
  path.
- ``rating``: what is done with each page; ``workers``: processes that do it; ``score_cache``: scores that are known.
- ``text``, ``choosing``, ``faster_trafilatura``: main text from HTML; ``signatures``, ``classifiers``, ``topic``,
  ``languages``, ``lines``: what else a text tells; ``linked``: how much of it stands in links.
- ``fasttext_file``, ``model_rules``: model files, and the rules beside them.
- ``passes``: looks at all pages of a corpus, once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
