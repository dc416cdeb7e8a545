"""Opt-outs: the signals of sites about uses of their pages, and the actions that these forbid; independent of crawling.

- ``table``: the table of all signals, by value and action, with their specifications; the list of training crawlers.
- ``said``: one signal of a page or site, and its form in archives; the verdict on a page from all its signals.
- ``robots_rules``, ``values``, ``html_meta``, ``tdmrep``: read the signals out of robots.txt, the head of a response,
  the head of a document, and ``/.well-known/tdmrep.json``.
- ``heard``: adds signals of the site's files and of later answers to those of a page.
- ``robots_rules`` also: which URLs a robots.txt lets one crawler fetch.
- ``values``, ``patterns``: shared parsers of field values, and of paths with wildcards.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
