"""A bucket of a real server on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator

import boto3
import pytest
from moto.server import ThreadedMotoServer

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket of a server on loopback, with the usual variables set."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    before = dict(os.environ)
    os.environ.update(KEYS, AWS_ENDPOINT_URL=f"http://{host}:{port}")
    boto3.client("s3").create_bucket(Bucket="crawls")
    yield "s3://crawls"
    os.environ.clear()
    os.environ.update(before)
    server.stop()
