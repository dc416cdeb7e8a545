"""Streams of random numbers."""

from __future__ import annotations

from random import Random


def stream(*name: object) -> Random:
    """Random numbers that depend on the name alone, not on ``PYTHONHASHSEED`` or what other streams have given."""
    return Random("/".join(map(str, name)))
