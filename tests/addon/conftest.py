"""A project for the tests of this folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from addon_project import ADDON, Project, scrapy
from addon_site import train_model


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A new project with spiders, the line for the add-on and a scorer."""
    root = tmp_path_factory.mktemp("project")
    assert scrapy("startproject", "theirs", ".", cwd=root).returncode == 0
    shutil.copy(Path(__file__).parents[1] / "helpers" / "addon_spiders.py", root / "theirs" / "spiders" / "theirs.py")
    train_model(root / "scorer.bin")
    with (root / "theirs" / "settings.py").open("a") as settings:
        settings.write(ADDON + 'SCORER_MODEL = "scorer.bin"\nDOWNLOAD_DELAY = 0\nSCORING_WORKERS = 1\n')
    return Project(root, root / "scorer.bin")
