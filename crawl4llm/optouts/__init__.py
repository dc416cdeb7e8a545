"""Opt-outs: what sites say of the uses that their pages may be put to, and what that forbids. Not a word of crawling.

- ``table``: the table of all signals, by value and action, with their specifications; the list of training crawlers.
- ``said``: one signal that a page or site has given, and its form in archives; from all that is known of a page to the
  actions that are forbidden.
- ``robots_rules``, ``values``, ``html_meta``, ``tdmrep``: read the signals out of robots.txt, the head of a response,
  the head of a document, and ``/.well-known/tdmrep.json``.
- ``heard``: adds to a page's own signals those of its site's files and of later answers.
- ``robots_rules`` also: what a robots.txt lets one crawler fetch.
- ``values``, ``patterns``: what they share: values of fields, and paths with wildcards.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
