"""The workers of a crawl: which of them has which partition of it, and how they crawl it together.

- ``opening``: begins a crawl in its storage, or joins it; refuses what cannot be crawled so.
- ``worker``: a worker's partitions, as the scheduler sees one crawl, and which document belongs to which.
- Batch order: ``crawl`` drives them from batch to batch; ``partition``: one of them; ``objects``: what each puts of an
  iteration for the others.
- Continuous order: ``continuous`` drives them; ``continuous_partition``: one of them; ``journal``: its commits, and
  their reader; ``routes``: owners, each asked of its partition.
- ``stores``: those of partitions, in either order, and their changes as bytes.
- ``complaints``: blocked domains, told to all workers, and the log of their requests.
- ``storage``: objects that are put once, in a bucket or a directory. ``shapes``: what an object must look like.
  ``archive``: pages, as they are put, and many of them in one.
- ``history``: how a crawl went, read back from its storage; ``soundness``: what must hold of all that a storage has.
- ``liveness``: leases, announcements and requests, of a single worker or of several on a Valkey server.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
