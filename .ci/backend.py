"""Builds with setuptools, but never out of what an earlier build has left.

setuptools copies modules into build/lib and packs all that lies there: one that has been deleted since would be in the
wheel.
"""

from __future__ import annotations

import shutil

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - the hooks of PEP 517 and 660 that need no change


def build_wheel(
    wheel_directory: str, config_settings: dict[str, object] | None = None, metadata_directory: str | None = None
) -> str:
    """Build a wheel of the modules that are there now."""
    shutil.rmtree("build/lib", ignore_errors=True)
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name
