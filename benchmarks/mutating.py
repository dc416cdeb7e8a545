"""Hostile changes to the objects of a folder: bits, lengths, values, names, links, and what compressed files unpack to.

An object of JSON is unpacked, changed and packed again as this project packs it, so that what reads it comes as far as
the value. All is drawn from a seed.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import shutil
import zlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from crawl4llm.base import sorted_file
from crawl4llm.base.compression import InflateError, zstd
from crawl4llm.base.input_files import from_json
from crawl4llm.cluster import journal
from crawl4llm.cluster.storage import Storage, StorageError, packed, sealed, unpacked
from crawl4llm.frontier import store

TRAP: Final = "received_trap"
"""A module that leaves a mark when it is imported."""
_NESTED: Final = "5,000 lists, each in the other"
_BOMB: Final = 1 << 30
_KNOWN_HEAD: Final = 4096
_SUFFIXES: Final = (".zst", ".gz")


@dataclass(frozen=True)
class Outside:
    """What hostile values name: things beside the folder that was received."""

    folder: Path

    def values(self) -> list[Any]:
        """Return values that no reader may follow, or swell by."""
        long = "x" * 1_000_000
        return [
            *(
                "../../escaped",
                "../../../escaped",
                f"{self.folder}/escaped",
                f"{self.folder}/victim",
                "..",
                ".",
                "",
                "/",
            ),
            *("a\r\nWARC-Type: response\r\n\r\n", "a\0b", "\x1b[2J\x1b]0;title\x07", "\ud800", "\u202etxt", "y" * 300),
            *(long, f"{TRAP}.Policy", f"scorer:{TRAP}.Policy", f"{TRAP}.Policy:1", f"{TRAP}", "crawl4llm.cli.main"),
            *(0, -1, 1, 2, 64, 30_000_000, 10**18, -(10**18), 2**63, 2**64, 10**400, 0.5, -0.0, 1e308, 5e-324),
            *(float("nan"), float("inf"), True, False, None, [], {}, [None], [[]], {"": 0}, _NESTED, [0] * 100_000),
            *(
                {f"k{number}": number for number in range(10_000)},
                ["../../escaped"],
                {"../../escaped": "../../escaped"},
            ),
            *("2022-08-01T00:00:00Z", "9999-99-99T99:99:99Z", "zstd", "none", "http://[::1", "file:///etc/passwd"),
            *("http://" + "a." * 3000 + "com/", f"file://{self.folder}/victim", "00000.jsonl.gz", "index.cdxj"),
        ]


class Mutator:
    """Changes one object of a folder at a time."""

    def __init__(self, seed: int, outside: Path) -> None:
        self._draw = random.Random(seed)
        self._outside = outside
        self._values = Outside(outside).values()

    def mutate(self, folder: Path) -> str:
        """Change an object below a folder; return what was done."""
        kinds: dict[str, list[Path]] = {}  # so that what there is many of is not drawn more often
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not path.is_symlink() and path.name != "lock":
                kinds.setdefault(re.sub(r"\d|[0-9a-f]{64}", "", str(path)), []).append(path)
        path = self._draw.choice(kinds[self._draw.choice(sorted(kinds))])
        name = path.relative_to(folder).as_posix()
        if path.parent != folder and self._draw.random() < 0.02:
            return f"{name}: {self._link_folder(path)}"
        content = _unsealed(folder, name)
        if content is not None and self._draw.random() < 0.8:
            path.write_bytes(content)
            said = self._change_of(path)(path)
            if path.is_file() and not path.is_symlink():
                path.write_bytes(sealed(name, path.read_bytes()))
            return f"{name}, sealed: {said}"
        return f"{name}: {self._change_of(path)(path)}"

    def _change_of(self, path: Path) -> Callable[[Path], str]:
        by_value = self._by_value(path)
        if by_value is not None and self._draw.random() < 0.7:
            return by_value
        changes = (self._flip, self._flip, self._cut, self._empty, self._grow, self._remove, self._double)
        return self._draw.choice((*changes, self._link_out, self._no_file, self._bomb, self._noise))

    # -- values -------------------------------------------------------------------------------------------------------

    def _by_value(self, path: Path) -> Callable[[Path], str] | None:
        if path.name == store.NAME:
            return self._stored
        if path.suffix == ".known":
            return self._known
        name = path.name.removesuffix(".gz").removesuffix(".zst")
        if name.endswith((".jsonl", ".cdxj")):
            return self._line
        if name.endswith((".json", ".txt", ".md", ".known", "-md5")) and path.name != "crawl.json":
            return self._json if name.endswith(".json") else None
        if path.name == "crawl.json" or "." not in path.name or path.name.endswith((".segments", "end.json")):
            return self._packed if _is_packed(path) else self._commit if path.parent.name == journal.LOG else None
        return None

    def _changed(self, content: Any) -> tuple[Any, str]:
        return changed(content, self._draw, self._values)

    def _json(self, path: Path) -> str:
        try:
            content, said = self._changed(json.loads(path.read_bytes()))
        except ValueError:
            return self._flip(path)
        path.write_text(dumped(content))
        return said

    def _packed(self, path: Path) -> str:
        content, said = self._changed(from_json(unpacked(path.read_bytes())))
        path.write_bytes(packed_json(content))
        return f"packed: {said}"

    def _commit(self, path: Path) -> str:
        """Change a part of a commit in continuous order."""
        storage, partition = Storage(f"file://{path.parents[3]}"), int(path.parents[1].name)
        try:
            commit = journal.decode(storage, partition, int(path.name), path.read_bytes())
        except StorageError:
            return self._flip(path)
        head, sections, lines = list(commit.head), dict(commit.sections), commit.lines
        part = self._draw.choice(("head", "lines", *(["mail"] if sections else [])))
        if part == "head":
            head, said = self._changed(head)
        elif part == "lines":
            content, said = self._changed(storage.read(path.name, lines))
            lines = packed_json(content)
        else:
            target = self._draw.choice(sorted(sections))
            content, said = self._changed(storage.read(path.name, sections[target]))
            sections[target] = packed_json(content)
        parts = [lines, commit.changes, commit.fingerprints]
        sizes = list(map(len, parts)), [(number, len(section)) for number, section in sections.items()]
        packed_head = packed_json([head, *sizes])
        size = len(packed_head).to_bytes(4, "little")
        path.write_bytes(b"".join([size, packed_head, *parts, *sections.values()]))
        return f"commit, {part}: {said}"

    def _stored(self, path: Path) -> str:
        """Change a value of a JOBDIR's store, its checksum with it."""
        with closing(store.Store(path)) as tables:
            table = self._draw.choice([name for name in store.TABLES if tables.count(name)])
            key, value = self._draw.choice(list(tables.items(table)))
            try:
                content, said = self._changed(json.loads(value))
                value = dumped(content).encode()
            except ValueError:
                place = self._draw.randrange(len(value) or 1)
                value = value[:place] + self._draw.randbytes(1) + value[place + self._draw.randrange(3) :]
                said = f"byte {place} changed"
            tables.put(table, key, value)
            tables.commit()
        return f"{table} {key!r:.40}: {said}"

    def _known(self, path: Path) -> str:
        """Change the head of a known set, its checksum with it."""
        data = path.read_bytes()
        said, _, _ = data[len(sorted_file.MAGIC) :].partition(b"\n")
        content, what = self._changed(json.loads(said))
        head = dumped(content).encode()[:3_900]
        head = b"%b%b\n%b\n" % (sorted_file.MAGIC, head, hashlib.sha256(head).hexdigest().encode())
        path.write_bytes(head.ljust(_KNOWN_HEAD) + data[_KNOWN_HEAD:])
        return what

    def _line(self, path: Path) -> str:
        """Change a value of a line of a log, an index or an export."""
        try:
            lines = _unpacked(path).splitlines(keepends=True)
        except (OSError, EOFError, zlib.error, zstd.ZstdError):
            return self._flip(path)
        if not lines:
            return self._grow(path)
        number = self._draw.randrange(len(lines))
        head, brace, rest = lines[number].partition(b"{")
        try:
            content, said = self._changed(json.loads(brace + rest))
        except ValueError:
            return self._flip(path)
        if head and self._draw.random() < 0.2:
            head = self._draw.choice((b"", b"x", b"x y ", b"com,a)/ 20220801000000 x ", b"\0 \0 ", head * 500))
        lines[number] = head + dumped(content).encode() + b"\n"
        if self._draw.random() < 0.1:
            lines.insert(number, lines[self._draw.randrange(len(lines))])
        _repack(path, b"".join(lines))
        return f"line {number}: {said}"

    # -- bytes --------------------------------------------------------------------------------------------------------

    def _flip(self, path: Path) -> str:
        data = bytearray(path.read_bytes() or b"\0")
        bits = [self._draw.randrange(len(data) * 8) for _ in range(self._draw.choice((1, 1, 3, 30)))]
        for bit in bits:
            data[bit // 8] ^= 1 << bit % 8
        path.write_bytes(data)
        return f"bits {bits[:5]} flipped"

    def _cut(self, path: Path) -> str:
        size = self._draw.randrange(path.stat().st_size + 1)
        os.truncate(path, size)
        return f"cut to {size} bytes"

    def _empty(self, path: Path) -> str:
        path.write_bytes(b"")
        return "empty"

    def _grow(self, path: Path) -> str:
        with path.open("ab") as file:
            file.write(self._draw.randbytes(self._draw.choice((1, 100, 100_000))))
        return "grown by noise"

    def _noise(self, path: Path) -> str:
        path.write_bytes(
            self._draw.choice((self._draw.randbytes(3000), b"{" * 100_000, b"[" * 100_000, b"\n" * 10_000))
        )
        return "replaced by noise"

    def _bomb(self, path: Path) -> str:
        """Replace a file by one that unpacks to a GiB: of one member or frame, or of many."""
        piece = self._draw.choice((b"\0" * (1 << 20), b"[" * (1 << 20), b'{"id": "a"}\n' * (1 << 16), b" " * (1 << 20)))
        times = _BOMB // len(piece)
        if path.name.endswith(".gz"):
            data = gzip.compress(piece) * times
        elif self._draw.random() < 0.5:
            data = zstd.compress(piece) * times
        else:
            packer = zstd.ZstdCompressor()
            data = b"".join([*(packer.compress(piece) for _ in range(times)), packer.flush()])
        path.write_bytes(data)
        return f"a bomb of {len(data):,} bytes"

    # -- names --------------------------------------------------------------------------------------------------------

    def _remove(self, path: Path) -> str:
        path.unlink()
        return "removed"

    def _double(self, path: Path) -> str:
        others = sorted(other for other in path.parent.iterdir() if other != path and other.is_file())
        if not others:
            return self._remove(path)
        other = self._draw.choice(others)
        shutil.copyfile(other, path)
        return f"replaced by {other.name}"

    def _link_out(self, path: Path) -> str:
        target = self._draw.choice((self._outside / "victim", self._outside / "missing", Path("/dev/zero")))
        path.unlink()
        path.symlink_to(target)
        return f"a link to {target.name}"

    def _link_folder(self, path: Path) -> str:
        parent = path.parent
        shutil.rmtree(parent)
        parent.symlink_to(self._outside / "victims")
        return f"{parent.name}/ is a link to a folder outside"

    def _no_file(self, path: Path) -> str:
        path.unlink()
        if self._draw.random() < 0.5:
            os.mkfifo(path)
            return "a FIFO"
        path.mkdir()
        return "a folder"


def changed(content: Any, draw: random.Random, values: list[Any]) -> tuple[Any, str]:
    """Return content of JSON with one of its values another, taken away, or there twice; and what was done."""
    places = list(_places(content, []))
    place = draw.choice(places) if places else []
    value = draw.choice(values)
    if not place:
        return value, f"all = {value!r:.60}"
    parent = content
    for step in place[:-1]:
        parent = parent[step]
    last = place[-1]
    chance = draw.random()
    if chance < 0.12:
        del parent[last]
        return content, f"{place} removed"
    if chance < 0.2 and isinstance(parent, list):
        parent.append(parent[last])
        return content, f"{place} twice"
    if chance < 0.25 and isinstance(parent, dict):
        name = draw.choice([one for one in values if isinstance(one, str) and len(one) < 400])
        parent[name] = parent.pop(last)
        return content, f"{place} called {name!r:.60}"
    if type(parent[last]) is int and chance < 0.4:
        value = parent[last] + draw.choice((-1, 1, 256, 10**6))
    parent[last] = value
    return content, f"{place} = {value!r:.60}"


def _places(content: Any, above: list[Any]) -> list[list[Any]]:
    """Return the ways to all values in content, some of those of long lists."""
    if above and len(above) > 8:
        return []
    found: list[list[Any]] = []
    inner = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for number, (step, value) in enumerate(inner):
        if number < 80:
            found += [[*above, step], *_places(value, [*above, step])]
    return found


def packed_json(content: Any) -> bytes:
    """Return what a storage packs of content, which may be none that this project writes."""
    return packed(dumped(content).encode())


def dumped(content: Any) -> str:
    """Return content as JSON, with the values that stand for what cannot be nested in Python."""
    return json.dumps(content).replace(json.dumps(_NESTED), "[" * 5000 + "]" * 5000)


def _unsealed(folder: Path, name: str) -> bytes | None:
    """Return an object of a storage without its checksum; None if it has none."""
    try:
        content = Storage(f"file://{folder}").get(name)
    except StorageError:
        return None
    return content if content is not None and sealed(name, content) == (folder / name).read_bytes() else None


def _is_packed(path: Path) -> bool:
    try:
        from_json(unpacked(path.read_bytes()))
    except (InflateError, ValueError):
        return False
    return True


def _unpacked(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else zstd.decompress(data) if path.suffix == ".zst" else data


def _repack(path: Path, data: bytes) -> None:
    path.write_bytes(
        gzip.compress(data) if path.suffix == ".gz" else zstd.compress(data) if path.suffix == ".zst" else data
    )
