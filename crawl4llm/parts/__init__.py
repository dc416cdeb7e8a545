"""Parts: what a crawl may also do.

Each is a folder with a declaration, which is always imported, and its work, which is imported if the settings ask for
it.

- ``part``: the hooks by which a part meets the crawl (:class:`Part`), and what it is told by them;
- ``opened``: the parts of one crawl;
- ``scope``, ``blocklists``, ``url_traps``, ``site_rules``, ``known_urls``: which links are followed, and where
  nothing is sent;
- ``aliases``: learns which links lead to second URLs of an owner's pages, or to pages worth nothing;
- ``near_duplicates``, ``known_texts``, ``mixture``: what is new among the texts of pages, and of which class they are;
- ``left_overs``: which pages have no running text;
- ``quality``: which pages count as good; ``budgets``: how many fetches owners and URL prefixes have.

CRAWL_PARTS names parts of somebody else by their dotted paths (docs/extending.md).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
