"""Commands that install missing packages, with the versions that this project needs.

They are read from the project's metadata, so they are right for an installation from the index, a wheel or a checkout.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires
from types import TracebackType

from crawl4llm.base.terminal import complain


def to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra, e.g. ``pip install 'pyarrow>=17'``.

    It names the extra itself if the metadata are missing, or are of a version without that extra.
    """
    wanted = [package for package, marker in _requirements() if re.search(rf"extra == .{re.escape(extra)}\W", marker)]
    return f"pip install {' '.join(map(repr, wanted or [f'crawl4llm[{extra}]']))}"


def tell_missing_packages() -> None:
    """End the process with one line if an import fails because a package that crawl4llm needs is missing."""
    before = sys.excepthook

    def tell(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        package = _package_of(error.name or "") if isinstance(error, ModuleNotFoundError) else None
        if package is None:
            before(kind, error, traceback)
        else:
            complain(
                f"a package is not installed that crawl4llm needs: pip install {package!r} (docs/install.md says for "
                "which Pythons it has wheels, and what builds it elsewhere)"
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
