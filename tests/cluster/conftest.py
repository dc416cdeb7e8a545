"""A bucket of a real server on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.testbucket import served_bucket


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """A bucket, with the usual variables set."""
    with served_bucket() as url:
        yield url
