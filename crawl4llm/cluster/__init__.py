"""The workers of a crawl: which of them has which partition of it.

- ``liveness``: the protocol of leases, announcements and requests, and what its implementations share.
- ``valkey``: the same on a Valkey server. Imports valkey-py.
- ``alone``: the same for a single worker.
"""
