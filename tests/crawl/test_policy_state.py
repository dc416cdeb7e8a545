"""What a policy has learned, kept in the store in pieces: the crawl goes on as if it had never stopped."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from driven_crawl import JobCrawl
from policy_helpers import SEEDS, new_policy, random_web, variants

from crawl4llm.base.errors import InputError
from crawl4llm.crawl import pieces
from crawl4llm.crawl.pieces import StoredMapping, StoredPieces
from crawl4llm.frontier import Entry
from crawl4llm.frontier.opening import open_frontier
from crawl4llm.frontier.store import Store
from crawl4llm.frontier.stored import is_document
from crawl4llm.policies import BasePolicy, Rating

IN_PIECES = ["backlink", "host", "link", "parent_mean", "parent_min"]
NO_JSON = [b"", b"{", b"[" * 100_000]
"""Which no policy sees: what reads the pieces finds it."""


class Own(BasePolicy):
    """Somebody else's policy that keeps its state itself."""

    name = "own"

    def __init__(self, workers: Any, options: Any) -> None:
        self._discovered = 0

    async def score(self, candidates: Any) -> list[Rating]:
        self._discovered += len(candidates)
        return [Rating(float((self._discovered * 7 + place) % 11)) for place, _ in enumerate(candidates)]

    def save(self) -> bytes:
        return b"%d" % self._discovered

    def load(self, state: bytes) -> None:
        self._discovered = int(state)


Own.keep_in = None  # type: ignore[assignment, method-assign]  # it need not have that
OWN = f"{__name__}.Own"


@pytest.fixture
def new_crawl(tmp_path: Path) -> Callable[..., JobCrawl]:
    """Begins crawls of a web of several hosts with a JOBDIR, or takes them up again."""

    def make(name: str, policy: str, **more: Any) -> JobCrawl:
        settings = {
            "commit_interval_pages": 1,
            "commit_fsync": False,
            **variants(Path()).get(policy, {"url_policy": policy}),
            **more,
        }
        (tmp_path / name).mkdir(exist_ok=True)
        return JobCrawl(random_web(), tmp_path / name, **settings)

    return make


@pytest.fixture(params=[1, 4, 32_768], ids=["1 in memory", "4 in memory", "all in memory"])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How many values of a mapping are in memory."""
    monkeypatch.setattr(pieces, "_MOST", request.param)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(tmp_path / "store.mdb", fsync=False)) as opened:
        yield opened


def stored(folder: Path) -> dict[bytes, bytes]:
    """Pieces, and what the policy saves beside them."""
    with closing(Store(folder / "job/store.mdb", readonly=True)) as opened:
        beside = {key: value for key, value in opened.items("current") if not is_document(value)}
        return beside | {key: value for key, value in opened.items("state") if key.startswith(b"policy")}


def is_piece(key: bytes) -> bool:
    return key.startswith(b"policy/") or b"\0\xff" in key


@pytest.mark.slow
@pytest.mark.parametrize(("batch_size", "most"), [(0, 1), (4, 32_768)], indirect=["most"])
@pytest.mark.parametrize("policy", [*IN_PIECES, OWN])
@pytest.mark.usefixtures("most")
def test_killed_after_each_batch(new_crawl: Callable[..., JobCrawl], policy: str, batch_size: int) -> None:
    """What was done since the last commit is done again; some kills come before that commit, some after."""
    with closing(new_crawl("whole", policy, crawl_batch_size=batch_size).run(*SEEDS)) as driven:
        whole = driven.lines
    draw, most = random.Random(batch_size), 3 if batch_size else 12  # of the others a page is a batch
    finished = None
    while not finished:
        with closing(new_crawl("killed", policy, crawl_batch_size=batch_size)) as driven:
            if driven.job.state.crawl is None:
                driven.start(*SEEDS)
            for lease in driven.crawl.unanswered():
                driven.fetch(lease)
            if driven.crawl.can_advance:
                driven.advance()
            for _ in range(draw.randrange(most)):
                if not driven.crawl.finished:
                    driven.batch()
            finished = driven.crawl.finished
    assert driven.lines == whole


@pytest.mark.usefixtures("most")
@pytest.mark.parametrize("most", [1, 32_768], indirect=True)
@pytest.mark.parametrize("policy", IN_PIECES)
def test_state_of_an_older_version_is_taken_apart(
    new_crawl: Callable[..., JobCrawl], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, policy: str
) -> None:
    with closing(new_crawl("whole", policy, crawl_batch_size=4).run(*SEEDS)) as driven:
        whole = driven.lines
    with monkeypatch.context() as older:  # which knew of no pieces, and saved what a policy saves without any
        older.setattr(StoredPieces, "mapping", lambda *_, **__: {})
        older.setattr(pieces.StoredPieces, "save", lambda _: None)
        if policy == "link":
            older.setattr("crawl4llm.policies.link.Policy.keep_in", BasePolicy.keep_in)
        with closing(new_crawl("old", policy, crawl_batch_size=4)) as driven:
            driven.start(*SEEDS)
            for _ in range(4):
                driven.batch()
    assert stored(tmp_path / "old").keys() == {b"policy"}
    with closing(new_crawl("old", policy, crawl_batch_size=4)) as driven:
        driven.batch()
    once = stored(tmp_path / "old")
    assert len(once) > 10
    assert len(once[b"policy"]) < 100 or policy == "link"
    with closing(new_crawl("old", policy, crawl_batch_size=4).run(*SEEDS)) as driven:
        assert driven.lines == whole


@pytest.mark.parametrize("policy", IN_PIECES)
def test_a_commit_writes_what_has_changed(
    new_crawl: Callable[..., JobCrawl], monkeypatch: pytest.MonkeyPatch, policy: str
) -> None:
    written: list[bytes] = []
    put = Store.put

    def note(self: Store, table: str, key: bytes, value: bytes) -> None:
        written.append(key)
        put(self, table, key, value)

    with closing(new_crawl("crawl", policy, crawl_batch_size=1)) as driven:
        driven.start(*SEEDS)
        for _ in range(10):
            driven.batch()
        driven.crawl._commits.commit_now(driven.crawl)
        monkeypatch.setattr(Store, "put", note)
        driven.crawl._commits.commit_now(driven.crawl)
        assert not list(filter(is_piece, written))
        driven.batch()
        assert 0 < len(list(filter(is_piece, written))) < 20


# -- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "value"),
    [
        *(("host", value) for value in NO_JSON),
        *product(IN_PIECES, [b'"x"', b"{}", b"[1]", b"[[1, 2], 3]", b"[-1, -1]", b"true"]),
    ],
)
def test_a_piece_that_is_none_is_named(
    new_crawl: Callable[..., JobCrawl], tmp_path: Path, policy: str, value: bytes
) -> None:
    with closing(new_crawl("crawl", policy, crawl_batch_size=1)) as driven:
        driven.start(*SEEDS)
        for _ in range(3):
            driven.batch()
    with closing(Store(tmp_path / "crawl/job/store.mdb")) as opened:
        keys = [(table, key) for table in ("state", "current") for key, _ in opened.items(table) if is_piece(key)]
        for table, key in keys:
            opened.put(table, key, value)
        opened.commit()
    with (
        pytest.raises(InputError, match=r"store\.mdb is damaged: \w+ [0-9a-f]+ of the policy is not of its kind; res"),
        closing(new_crawl("crawl", policy, crawl_batch_size=1)) as driven,
    ):
        driven.run(*SEEDS)


@pytest.mark.parametrize(
    "value", [b"", b"null", b"{}", b"[]", b"[[], [], []]", b"[" * 100_000, b"\xff", b'{"model": 1}']
)
@pytest.mark.parametrize("policy", IN_PIECES)
def test_a_state_that_is_none_is_named(
    new_crawl: Callable[..., JobCrawl], tmp_path: Path, policy: str, value: bytes
) -> None:
    with closing(new_crawl("crawl", policy)) as driven:
        driven.start(*SEEDS)
    with closing(Store(tmp_path / "crawl/job/store.mdb")) as opened:
        opened.put("state", b"policy", value)
        opened.commit()
    with pytest.raises(
        InputError, match=rf"store\.mdb is damaged: the state of its policy is not that of {policy}; re"
    ):
        new_crawl("crawl", policy)


# -- the mapping ------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("most")
@pytest.mark.parametrize("of_documents", [False, True])
def test_a_mapping_is_a_dict(store: Store, of_documents: bool) -> None:
    draw = random.Random(5)
    names = ["", "a", "ab", "\ud800", "é" * 200, "é" * 201, *("x" * length for length in (399, 400, 401, 5000))]
    model: dict[str, Any] = {}
    open_frontier(store, reranks=True).push([Entry(name, name, 0.5, 1, None) for name in names])
    other = StoredMapping(store, "other", lambda _: True, of_documents=of_documents)
    other["a"] = "left alone"
    mapping = StoredMapping(store, "one", lambda _: True, of_documents=of_documents)
    for _ in range(2000):
        name = draw.choice(names)
        match draw.randrange(6):
            case 0 | 1:
                mapping[name] = model[name] = [draw.random(), name[:3]]
            case 2:
                assert mapping.pop(name, None) == model.pop(name, None)
            case 3:
                assert mapping.get(name) == model.get(name)
                assert (name in mapping) == (name in model)
            case 4 if draw.random() < 0.1:
                mapping.save()
                store.commit()
                mapping = StoredMapping(store, "one", lambda _: True, of_documents=of_documents)
            case 5 if draw.random() < 0.1:
                assert dict(mapping) == model
                assert len(mapping) == len(model)
    with pytest.raises(KeyError):
        mapping["never"]
    with pytest.raises(KeyError):
        del mapping["never"]
    assert dict(other) == {"a": "left alone"}
    assert sum(is_document(value) for _, value in store.items("current")) == len(names)


def test_a_name_that_is_not_that_of_its_key(store: Store) -> None:
    mapping = StoredMapping(store, "one", lambda _: True)
    mapping["x" * 500] = 1
    mapping.save()
    ((key, _),) = store.items("state")
    for value in (["y" * 500, 1], [5, 1], 1, [], ["x" * 500, 1, 2]):
        store.put("state", key, json.dumps(value).encode())
        with pytest.raises(InputError, match="is damaged: one 706f"):
            StoredMapping(store, "one", lambda _: True).get("x" * 500)


@pytest.mark.parametrize("policy", IN_PIECES)
def test_without_pieces_a_policy_saves_everything(policy: str) -> None:
    """As one does that somebody else's policy holds."""
    one = new_policy(random_web(), url_policy=policy)
    state = json.loads(one.save())
    assert isinstance(state, list | dict)
