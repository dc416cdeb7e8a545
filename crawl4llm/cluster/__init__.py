"""The workers of a crawl: which of them has which partition of it, and how they crawl it together.

- ``opening``: begins a crawl in its storage, or joins it; refuses what cannot be crawled so.
- ``worker``: a worker's partitions, as the scheduler sees one crawl; ``partitions``: which document belongs to which.
- Batch order: ``crawl`` drives them from batch to batch, by what all have put of one; ``partition``: one of them.
- Continuous order: ``continuous`` drives them; ``continuous_partition``: one of them; ``journal``: its commits;
  ``post``: what is read of all journals; ``routes``: owners, each asked of its partition; ``changes``: what has changed
  of a store, as bytes.
- ``controls``: which domains are blocked, told to all workers; ``request_spool``: what they have sent to whom.
- ``soundness``: what must hold of all that a storage has.
- ``storage``: objects that are put once, in a bucket or a directory; ``objects``: those of a crawl, ``history``: how it
  went, read back from them. ``shapes``: what an object must look like. ``segments``: the archive of a batch;
  ``compacted``: many of them in one. ``stores``: those of partitions, in either order.
- ``liveness``: leases, announcements and requests, for a single worker.
- ``valkey``: the same for several, on a Valkey server. Imports valkey-py.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
