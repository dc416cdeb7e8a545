"""Seeds, the documents a crawl starts from; and documents by a key or URL from the user."""

from __future__ import annotations

import hashlib
import json
import logging
import re
import string
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from crawl4llm.base.errors import InputError, MissingRecord, as_input_error
from crawl4llm.base.input_files import input_lines
from crawl4llm.base.pages import Corpus
from crawl4llm.base.run_folder import LIVE

logger = logging.getLogger(__name__)

_COMMENT = re.compile(r"(?:^|\s)#.*")
"""A ``#`` inside a URL begins its fragment, not a comment."""
_NEAR, _LONGEST_MISTYPED = 3, 200


@dataclass
class Seeds:
    """Keys of the seeds that the corpus holds, each once, in the order given; and counts of the others."""

    keys: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def digest(self) -> str:
        """The digest of the keys, which decides whether a resumed crawl is the same one."""
        return f"sha256:{hashlib.sha256(json.dumps(self.keys).encode()).hexdigest()}"


def sample_seeds(corpus: Corpus, n: int, seed: int) -> Seeds:
    """Draw ``n`` random documents of a corpus, or all of a smaller one."""
    keys = corpus.sample(min(n, len(corpus)), seed)
    return Seeds(keys, Counter({"seeds/given": len(keys)}))


def read_seeds(given: Path | Sequence[str], corpus: Corpus) -> Seeds:
    """Read a seeds file: one document key or URL a line, ``#`` comments, gzip by its name's ending. Or take them from a
    list.

    Seeds that the corpus does not hold, malformed ones and repeated ones are counted and skipped. Raises InputError if
    the file cannot be read or has no usable seed.
    """
    seeds = Seeds()
    known: set[str] = set()
    named, lines = (f"seeds file {given}", _lines(given)) if isinstance(given, Path) else ("seeds", enumerate(given, 1))
    for number, line in lines:
        seeds.counts["seeds/given"] += 1
        key = _key(line, corpus)
        if key is None:
            fault = "unknown" if "://" in line else "malformed"
        elif key in known:
            fault = "duplicate"
        elif key not in corpus:
            fault = "unknown"
        else:
            known.add(key)
            seeds.keys.append(key)
            continue
        seeds.counts[f"seeds/{fault}"] += 1
        logger.debug("%s:%d: %s seed %s", given if isinstance(given, Path) else named, number, fault, line)
    if not seeds.keys:
        wanted = "http or https URLs" if corpus.name == LIVE else "ids or URLs of the corpus"
        raise InputError(f"{named}: no usable seed ({_tally(seeds.counts)}); give {wanted}")
    if seeds.counts["seeds/given"] > len(seeds.keys):
        logger.warning("%s: not all can be used: %s", named[0].upper() + named[1:], _tally(seeds.counts))
    return seeds


def _key(line: str, corpus: Corpus) -> str | None:
    """Return the document key that a line of the seeds file means; None if it is neither a key nor a URL."""
    if "://" in line:
        return corpus.resolve(line)
    return line if corpus.is_key(line) else None


def _tally(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {key.rpartition('/')[2]}" for key, count in sorted(counts.items()) if count) or "empty"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with as_input_error(f"seeds file {path} cannot be read", errors=(OSError, EOFError, zlib.error)):
        for number, line in enumerate(input_lines(path, compressed=path.suffix == ".gz", errors="replace"), 1):
            if seed := _COMMENT.sub("", line).strip():
                yield number, seed


def find_document(corpus: Corpus, given: str) -> str:
    """Return the key of the document for a key or URL, which the corpus may not hold. Raises MissingRecord."""
    is_key = corpus.is_key(given)
    if is_key and ("://" not in given or given in corpus):  # a URL may be a key, and still be looked for as URLs are
        return given
    try:
        key = corpus.resolve(given)
    except InputError:
        if "." in given or "/" in given:
            raise
        key = None  # without an index of URLs, what is no URL either
    if key is None and not is_key:
        raise not_held(corpus, given)
    return key or given


def not_held(corpus: Corpus, given: str) -> MissingRecord:
    """Return the error for an unknown key or URL; it names keys of the corpus that differ in one character."""
    near = [key for key in dict.fromkeys(_one_character_away(given)) if corpus.is_key(key) and key in corpus][:_NEAR]
    example = next(iter(corpus.keys()), None)
    hint = f"; did you mean {' or '.join(near)}?" if near else f"; ids look like {example}" if example else ""
    fault = "does not hold" if corpus.is_key(given) else "holds no document at"
    return MissingRecord(f"the corpus {fault} {given}{hint}")


def _one_character_away(text: str) -> Iterator[str]:
    """Yield the keys one slip away from ``text``: neighbours swapped, one character too many, missing, or different."""
    if len(text) > _LONGEST_MISTYPED:
        return
    splits = [(text[:at], text[at:]) for at in range(len(text) + 1)]
    letters = "".join(sorted({*text, *string.digits, *string.ascii_lowercase}))
    yield from (head + tail[1] + tail[0] + tail[2:] for head, tail in splits if len(tail) > 1)
    yield from (head + tail[1:] for head, tail in splits if tail)
    yield from (head + letter + tail for head, tail in splits for letter in letters)
    yield from (head + letter + tail[1:] for head, tail in splits if tail for letter in letters)
