"""The folder of a new model: it appears whole, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawl4llm.base.errors import InputError
from crawl4llm.base.files import check_free, whole_folder


@contextmanager
def new_folder(to: Path) -> Iterator[Path]:
    """A folder beside ``to`` to write to, which takes its place when the block ends well, and is removed if not.

    What a training of the same folder has left that was killed is removed too. Raises InputError where ``to`` is there
    already, or cannot be written.
    """
    to = to.absolute()
    check_folder(to)
    try:
        with whole_folder(to) as temporary:
            yield temporary
            check_folder(to)
    except OSError as error:
        raise InputError(f"{error.filename or to}: {error.strerror}") from None


def check_folder(to: Path) -> None:
    """Raise InputError where ``to`` is the name of a model file, or something is there but an empty folder."""
    if to.suffix in {".bin", ".ftz"}:
        raise InputError(f"--out {to}: is made as a folder, with model.bin in it; give the folder's name")
    check_free(to)
