"""The frontier: documents discovered and not yet crawled, best score first, and the leases on those being crawled.

``frontier`` defines a frontier; ``opening`` makes one of the parts in ``orders``. The *medium* holds the documents:
``memory``; the store (``stored``); or ``plain``, sorted ``runs`` in the store without look-ups. The *order* decides
which document is leased next: by score, in each medium; by owner; by class, for a crawl with MIXTURE (``mixed``); or by
owner and class. ``owners`` knows which owners may be asked now, ``ranks`` whether to wait for better documents;
``holds`` is a file that keeps waits beyond the process. ``composed`` has the table of leases, and the frontier itself.

``aside`` keeps documents that are set aside, in memory or in the store.

``visited`` is the set of all documents ever discovered, in memory or on disk. On disk it uses ``bloom``, a filter that
recognises most new keys, and ``fingerprints``, the sorted runs of keys. ``store`` is the file of all durable state.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
