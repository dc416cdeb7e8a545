"""``crawl4llm.simulate``: a crawl of a corpus in a process of its own, for notebooks and scripts.

It is ``scrapy crawl influence``, with the settings of the project in the current folder, or those of the profile
``simulation``. It runs beside the event loop of a notebook, and the side effects of a policy end with the process.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import os
import re
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from crawl4llm.base.bars import Progress
from crawl4llm.base.crawl_log import NAME as CRAWL_LOG
from crawl4llm.base.errors import InputError, as_input_error
from crawl4llm.base.input_files import given_path, read_input
from crawl4llm.base.output_dir import claim_output_dir
from crawl4llm.base.processes import python_command
from crawl4llm.base.run_folder import SETTINGS, read_json
from crawl4llm.tools.opened_run import OpenedRun, open_run

if TYPE_CHECKING:
    from crawl4llm.policies import Policy

_CRAWL: Final = "from scrapy.cmdline import execute; execute()"
_LARGEST: Final = 1 << 24
"""Bytes of a policy's file."""
_LAST: Final = 1 << 14
"""Bytes at the end of the process's output that are searched for its error."""
_LOOK_SECONDS: Final = 0.5
"""Between two looks at how far the crawl is."""
_ERROR: Final = re.compile(r"^crawl4llm: error: (.*)$", re.MULTILINE)
_RAISED: Final = re.compile(r"^[\w.]*(?:Error|Exception|Failure)\b.*", re.MULTILINE)
"""The last line of a traceback, such as one of a policy."""


def simulate(
    policy: str | Path | type[Policy] = "influence",
    corpus: str | Path | None = None,
    *,
    out: str | Path | None = None,
    seeds: str | Path | None = None,
    **settings: object,
) -> OpenedRun:
    """Crawl a corpus by a policy, and return the crawl when it is done.

    ``policy``: what URL_POLICY takes, a file with a class ``Policy``, or a class, also one of a notebook, whose cell
    must hold all that it needs. ``corpus``: what CORPUS takes, by default the project's own. ``out``: the output
    directory, by default the next number in ``crawls/``. ``seeds``: a file; without it they are drawn. ``settings``:
    any others by their names, such as ``CRAWL_MAX_PAGES=1000``; see docs/settings.md.

    A bar on the standard error output shows how far it is, or a line now and then if that is no terminal.

    If the crawl fails, raises InputError with the line that it ended with. Ctrl-C stops it as it stops a crawl: the
    crawled pages are whole; then KeyboardInterrupt is raised.
    """
    with tempfile.TemporaryDirectory(prefix="crawl4llm-") as scratch, tempfile.TemporaryFile() as said:
        url_policy = _url_policy(policy, Path(scratch))
        output = claim_output_dir(None if out is None else str(out))
        values = {"OUTPUT_DIR": output, "URL_POLICY": url_policy, **({"CORPUS": corpus} if corpus else {}), **settings}
        arguments = [f"-s{name}={int(one) if isinstance(one, bool) else one}" for name, one in values.items()]
        if seeds is not None:
            arguments.append(f"-aseeds={seeds}")
        status = _run(["crawl", "influence", *arguments], scratch, _profile(Path(scratch)), said, output)
        if status:
            with suppress(OSError):
                output.rmdir()  # where it never began
            raise InputError(_error_in(said) or f"the crawl ended with status {status}")
    return open_run(output)


def _profile(folder: Path) -> dict[str, str]:
    """Return the environment that names the settings, which are put into a folder if there is no project here or
    above."""
    here = Path.cwd()
    if "SCRAPY_SETTINGS_MODULE" in os.environ or any((one / "scrapy.cfg").is_file() for one in (here, *here.parents)):
        return {}
    (folder / "settings").symlink_to((Path(__file__).parents[1] / "profiles").resolve())
    return {"SCRAPY_SETTINGS_MODULE": "settings.simulation"}


def _run(arguments: list[str], folder: str, profile: dict[str, str], said: BinaryIO, output: Path) -> int:
    """Run Scrapy in a session of its own, so that Ctrl-C reaches it once, and from here only."""
    path = os.pathsep.join([*(entry or str(Path.cwd()) for entry in sys.path), folder])
    process = subprocess.Popen(
        python_command(_CRAWL, *arguments),
        env={**os.environ, **profile, "PYTHONPATH": path},
        stdin=subprocess.DEVNULL,
        stdout=said,
        stderr=said,
        start_new_session=True,
    )
    try:
        return _watch(process, output)
    except KeyboardInterrupt:
        process.send_signal(signal.SIGINT)
        process.wait()
        raise
    finally:
        process.kill()  # where Ctrl-C comes a second time; one that has ended is not harmed
        process.wait()


def _watch(process: subprocess.Popen[bytes], output: Path) -> int:
    """Show how far a crawl is until its process ends; return the exit status."""
    status, read = process.poll(), 0
    with ExitStack() as shown:
        bar: Progress[None] | None = None
        while True:
            with suppress(OSError), (output / CRAWL_LOG).open("rb") as log:
                if bar is None:
                    total = read_json(output / SETTINGS).get("settings", {}).get("CRAWL_MAX_PAGES")
                    bar = shown.enter_context(Progress[None](None, "simulating", total, unit=" pages"))
                log.seek(read)
                for piece in iter(lambda: log.read(1 << 20), b""):
                    read += len(piece)
                    bar.update(piece.count(b"\n"))
            if status is not None:
                return status
            with suppress(subprocess.TimeoutExpired):
                status = process.wait(_LOOK_SECONDS)


def _url_policy(policy: str | Path | type[Policy], folder: Path) -> str:
    """Return a value for URL_POLICY; a file, or a class that no other process can import, is copied to a folder.

    Raises InputError.
    """
    if isinstance(policy, type):
        if policy.__module__ != "__main__":
            return f"{policy.__module__}.{policy.__qualname__}"
        source, name = _source_of(policy).encode(), policy.__name__
        stem = name
    elif str(policy).endswith(".py"):
        path = given_path(policy)
        with as_input_error(f"policy {path} cannot be read"):
            source, name, stem = read_input(path, _LARGEST), "Policy", path.stem
    else:
        return str(policy)
    module = "own_policy_" + re.sub(r"\W", "_", stem)
    (folder / f"{module}.py").write_bytes(source)
    return f"{module}.{name}"


def _source_of(policy: type) -> str:
    """Return the lines of a notebook's cell or a script that define a class: imports, definitions, constants. Raises
    InputError.

    Nothing else of it: the cell may be the one that crawls.
    """
    places = {part.__code__.co_filename for part in vars(policy).values() if inspect.isfunction(part)}
    lines = linecache.getlines(min(places, default=""))
    if not lines:
        raise InputError(f"the source of class {policy.__name__} is unknown; write it to a file, and give the file")
    kept = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    tree = ast.parse("".join(lines))
    tree.body = [node for node in tree.body if isinstance(node, kept) or _is_constant(node)]
    return ast.unparse(tree)


def _is_constant(node: ast.stmt) -> bool:
    try:
        ast.literal_eval(node.value)  # type: ignore[attr-defined]  # what has none is no assignment
    except (AttributeError, TypeError, ValueError):
        return False
    return isinstance(node, ast.Assign | ast.AnnAssign)


def _error_in(said: BinaryIO) -> str | None:
    """Return the crawl's own line for its error, with the exception, or the last line; None without any line."""
    said.seek(max(0, said.seek(0, os.SEEK_END) - _LAST))
    text = said.read().decode("utf-8", "replace").strip()
    raised = _RAISED.findall(text)
    if errors := _ERROR.findall(text):
        return f"{errors[-1]} ({raised[-1]})" if raised else errors[-1]
    return next(reversed(text.splitlines()), None)
