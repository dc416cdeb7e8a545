"""The frontier: documents discovered and not yet crawled, best score first, and the leases on those being crawled.

This module says what a frontier is; ``opening`` makes one, of parts that ``orders`` names. The *medium* holds the
documents: ``memory``; the store, ``stored``, or ``plain``, in sorted ``runs``, if none is ever looked for. The *order*
says which is leased next: by score, which each medium knows; by owner (``owners`` tells who may be asked now,
``ranks`` whether to wait for better documents; ``holds`` is the file in which waits outlive the process); by class, for
a crawl with MIXTURE (``mixed``); or by both. ``composed`` has the leases' ledger, and the frontier itself.

``aside`` keeps documents that are out of its order for a while, in memory or in the store.

``visited`` is the set of all documents ever discovered, in memory or on disk, there with ``bloom`` (the filter that
knows most of what is new) and ``fingerprints`` (the sorted runs of keys). ``store`` is the file that everything durable
is committed to.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
