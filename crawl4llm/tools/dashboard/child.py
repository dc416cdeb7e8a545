"""Child processes for reading that can hang, crash or use much memory: a page's text, and the store of a JOBDIR.

Such a process prints one JSON object.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from itertools import islice
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from crawl4llm.base import crawl_log
from crawl4llm.base.errors import InputError, MissingRecord, PageError, as_input_error
from crawl4llm.base.files import PreadFile
from crawl4llm.base.input_files import json_or_none, open_input, parse_json
from crawl4llm.base.processes import python_command
from crawl4llm.base.run_folder import SETTINGS, WARC, read_json
from crawl4llm.base.terminal import harmless

if TYPE_CHECKING:
    from crawl4llm.warc import Entry

_SECONDS: Final = 60.0
_LONGEST_TEXT: Final = 20_000
_READ: Final = 50_000
"""Documents of a frontier that are looked at, the best ones."""
_BINS, _OWNERS = 20, 15
_BEFORE: Final = 0.05
"""Share of the index by which a search begins before the expected place."""
_LONGEST_LINE: Final = 1 << 16


def run(*arguments: str) -> dict[str, Any]:
    """Run a process with these arguments and return its output; ``{"fault": ...}`` if it fails."""
    command = python_command(f"from {__name__} import main; main()", *arguments)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, timeout=_SECONDS, check=True)
        found = parse_json(done.stdout)
    except subprocess.TimeoutExpired:
        return {"fault": f"it took more than {_SECONDS:.0f} s"}
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return {"fault": f"a process that reads it has failed ({type(error).__name__})"}
    return found if isinstance(found, dict) else {}


def text(output: str, offset: str) -> dict[str, Any]:
    """Return the main text of the page whose line of the crawl log begins at an offset. Raises InputError and
    PageError."""
    # extractors are slow to import, and seldom needed
    from crawl4llm.scoring import EXTRACTORS, extract_text
    from crawl4llm.warc import INDEX_NAME, TEXT_INDEX_NAME, read_record

    log, warc = PreadFile(Path(output) / crawl_log.NAME), Path(output) / WARC
    key, near = line_at(log, int(offset)).get("id"), int(offset) / max(log.size, 1)
    if not isinstance(key, str):
        raise InputError("the crawl log was changed; the page is no longer in it")
    if (warc / TEXT_INDEX_NAME).exists():
        found = read_record(warc, _entry(warc / TEXT_INDEX_NAME, key, near)).decode(errors="replace")
    else:
        facts = read_json(Path(output) / SETTINGS)
        extractor = EXTRACTORS.get(str(facts.get("extractor")), EXTRACTORS["trafilatura"])
        found = extract_text(read_record(warc, _entry(warc / INDEX_NAME, key, near)), extractor)
    cut = found[:_LONGEST_TEXT]
    return {"text": harmless(cut) + (" ..." if len(found) > len(cut) else "")}


def line_at(log: PreadFile, offset: int) -> dict[str, Any]:
    """Return the line of a crawl log that begins at an offset; empty if none does."""
    line = json_or_none(log.read(_LONGEST_LINE, offset).partition(b"\n")[0])
    return line if isinstance(line, dict) else {}


def _entry(index: Path, key: str, near: float) -> Entry:
    """Return the entry of a page in an index. The index is in the order of the crawl log, so the search begins somewhat
    before the expected place. Raises MissingRecord and InputError."""
    # only what is asked for, as the child starts for each question
    from crawl4llm.warc import parse_entry

    wanted = b'"id": ' + json.dumps(key).encode()
    with as_input_error(f"{index} cannot be read"):
        file = open_input(index)
    with file, mmap(file.fileno(), 0, access=ACCESS_READ) as lines:
        at = lines.find(wanted, int(max(near - _BEFORE, 0) * len(lines)))
        if at < 0:
            at = lines.find(wanted)
        if at < 0:
            raise MissingRecord(f"{index} has no page {key}")
        begin = lines.rfind(b"\n", 0, at) + 1
        line = lines[begin : begin + 2 * _LONGEST_LINE].partition(b"\n")[0]
    return parse_entry(line.decode(errors="replace"), str(index))


def frontier(jobdir: str) -> dict[str, Any]:
    """Return how scores and owners are distributed among the best documents of a frontier. Raises InputError. The
    folder is known to be a JOBDIR."""
    # only what is asked for, as the child starts for each question
    import numpy as np

    from crawl4llm.base.domains import owner_of
    from crawl4llm.crawl import StoredCrawl

    with StoredCrawl(Path(jobdir)) as crawl:
        scores, owners = [], Counter[str]()
        for entry in crawl.frontier.best(_READ):
            scores.append(entry.score)
            owners[owner_of(entry.url or entry.key)] += 1
        aside = Counter(scope for scope, _ in islice(crawl.set_aside(), _READ))
        try:
            numbers, edges = (found.tolist() for found in np.histogram(scores, _BINS))
        except ValueError:  # too close together, or too far apart, for as many bins
            numbers, edges = [len(scores)], [min(scores), max(scores)]
        return {
            "read": len(scores),
            "queued": len(crawl.frontier),
            "scores": list(zip(edges, edges[1:], numbers, strict=False)),
            "owners": [[harmless(name), count] for name, count in owners.most_common(_OWNERS)],
            "aside": [[harmless(name), count] for name, count in aside.most_common(_OWNERS)],
        }


_ACTIONS: Final[dict[str, Callable[..., dict[str, Any]]]] = {"text": text, "frontier": frontier}


def main() -> None:
    """Print the result of the action that the first argument names."""
    try:
        found = _ACTIONS[sys.argv[1]](*sys.argv[2:])
    except (InputError, PageError, OSError, ValueError) as error:
        found = {"fault": harmless(str(error))}
    sys.stdout.write(json.dumps(found, allow_nan=False))
