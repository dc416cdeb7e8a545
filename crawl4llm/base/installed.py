"""Commands that install missing packages, with the versions that this project needs.

They are read from the project's metadata, so they are right for an installation from the index, a wheel or a checkout.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from types import TracebackType

from crawl4llm.base.command_lines import docs
from crawl4llm.base.terminal import complain


def to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, e.g. ``pip install 'pyarrow>=17'``.

    If the metadata are missing, or of a version that did not have it, it names the extra of the checkout or wheel.
    """
    wanted = [package for package, marker in _requirements() if re.search(rf"extra == .{re.escape(extra)}\W", marker)]
    return f"pip install {' '.join(map(repr, wanted or [f'{_origin()}[{extra}]']))}"


def _origin() -> str:
    """Return what pip can install crawl4llm from, as no index has it: the checkout that runs, or words for a wheel."""
    checkout = Path(__file__).resolve().parents[2]
    return str(checkout) if (checkout / "pyproject.toml").is_file() else "PATH-OF-THE-WHEEL"


def tell_missing_packages() -> None:
    """End the process with one line if an import fails because a package that crawl4llm needs is missing."""
    before = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        package = _package_of(error.name or "") if isinstance(error, ModuleNotFoundError) else None
        if package is None:
            before(kind, error, traceback)
        else:
            complain(
                f"a package is not installed that crawl4llm needs: pip install {package!r} (for which Pythons it has "
                f"wheels, and what builds it elsewhere: {docs('install')})"
            )

    sys.excepthook = tell


def _package_of(module: str) -> str | None:
    """Return the requirement of a module, e.g. ``fasttext-community>=0.11.9`` for ``fasttext_pybind``.

    None if crawl4llm does not always need its package. The names of those packages begin like those of their modules.
    """
    name = re.split(r"[._]", module)[0].lower()
    packages = (package for package, marker in _requirements() if "extra ==" not in marker)
    return next((package for package in packages if name and package.lower().startswith(name)), None)


def _requirements() -> list[tuple[str, str]]:
    """Return the requirements of the installed project, extras included: packages with versions, and their markers."""
    try:
        lines = requires("crawl4llm") or []
    except PackageNotFoundError:  # it runs from a checkout, without being installed
        return []
    return [(package.strip(), marker) for package, _, marker in (line.partition(";") for line in lines)]
