"""Parts: optional features of a crawl.

Each is a folder with a declaration, which is always imported, and its work, which is imported if the settings need it.

- ``part``: the hooks between a part and the crawl (:class:`Part`), and their arguments;
- ``opened``: the parts of one crawl;
- ``scope``, ``blocklists``, ``url_traps``, ``site_rules``, ``known_urls``: links that are followed, and sites that get
  no requests;
- ``known_links``: pages whose links are followed without a request;
- ``aliases``: learns which links lead to second URLs of an owner's pages, or to worthless pages;
- ``near_duplicates``, ``known_texts``, ``mixture``: whether the texts of pages are new, and their classes;
- ``left_overs``: pages without running text;
- ``quality``: pages that count as good; ``budgets``: the fetches that owners and URL prefixes have.

CRAWL_PARTS names external parts by their dotted paths (docs/extending.md).
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
