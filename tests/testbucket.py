"""A bucket of a real server on loopback, for tests and benchmarks."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@contextmanager
def served_bucket() -> Iterator[str]:
    """Serve an empty bucket, with the usual variables set; its URL."""
    import boto3  # both take a second to import, in each process that collects tests
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.WARNING)  # it logs each request
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    try:
        boto3.client("s3").create_bucket(Bucket="crawls")
        yield "s3://crawls"
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.stop()
