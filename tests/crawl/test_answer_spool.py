"""Answers that a batch cannot take yet: in memory up to a bound, else in a file that another process goes on from."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from changed_json import OTHERS, places, with_other

from crawl4llm.base.files import ArchiveError
from crawl4llm.base.pages import Capture, Link, PageRecord
from crawl4llm.crawl import reorder_buffer as outstanding
from crawl4llm.crawl.answer_spool import AnswerSpool
from crawl4llm.crawl.reorder_buffer import Answer, Hop, ReorderBuffer
from crawl4llm.frontier import Entry, Lease, Outcome

CAPTURE = Capture(
    url="http://example.org/a",
    date="2026-11-20T12:00:00.123456Z",
    method="GET",
    request_headers=[(b"Host", b"example.org")],
    request_body=b"",
    status=200,
    reason="Fine \xe9",
    headers=[(b"X-Odd", bytes(range(128, 256))), (b"ETag", b'"a"')],
    exact_headers=True,
    body=b"<p>\x00\xff",
    truncated="disconnect",
    milliseconds=12,
)
HEAD = struct.Struct("<QIQI")
HTML = "<p>Größe</p>".encode()


def leases(numbers: Sequence[int]) -> list[Lease]:
    return [Lease(Entry(f"http://example.org/{n}", "", 0.5, 1, None, 1), n) for n in numbers]


def page(lease: Lease, html: bytes = HTML, *captures: Capture) -> PageRecord:
    links = [
        Link("http://example.org/\ud800", None, "an\u202echor", False),
        Link("http://x.org/", "http://x.org/", "", True),
    ]
    said = {"opt_outs": "meta * page robots nofollow", "follows": False}
    key = lease.entry.key
    return PageRecord(key, key, html=html, outlinks=links, hops=["a", "b"], captures=captures, **said)


def answered(waiting: ReorderBuffer, lease: Lease, page: PageRecord | None, reason: str | None = None) -> Answer:
    answer = waiting.answer(lease)
    assert answer is not None
    answer.page, answer.reason, answer.status = page, reason, 200 if page else None
    answer.outcome = Outcome.FAILED if reason else None
    waiting.hold(answer)
    return answer


def test_all_of_an_answer_comes_back(tmp_path: Path) -> None:
    """The page, each exchange to the last byte, a failure with its reason, a document that is to be tried again."""
    first, same, failed, again, head = given = leases([3, 4, 5, 6, 7])
    pages = [page(first, HTML, replace(CAPTURE, status=301, body=b""), CAPTURE), page(same, CAPTURE.body, CAPTURE)]
    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool)
    waiting.add([head, *given[:-1]])
    answered(waiting, first, pages[0])
    answered(waiting, same, pages[1])
    answered(waiting, failed, None, "http_404")
    answered(waiting, again, None, "error").outcome = None
    waiting.redirected(head, Hop("http://example.org/next", (CAPTURE,)))
    waiting.keep()
    spool.close()

    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool)
    waiting.add([head, *given[:-1]])
    waiting.recall()
    assert waiting.unanswered() == [head]
    assert waiting.hop_of(head) == Hop("http://example.org/next", (CAPTURE,))
    assert waiting.take(None) == []
    answered(waiting, head, None, "dns")
    taken = waiting.take(None)
    assert [answer.lease for answer in taken] == [head, first, same, failed, again]
    assert [answer.page for answer in taken] == [None, *pages, None, None]
    assert [answer.reason for answer in taken] == ["dns", None, None, "http_404", "error"]
    assert [answer.outcome for answer in taken] == [Outcome.FAILED, None, None, Outcome.FAILED, None]
    assert (tmp_path / "spool").stat().st_size, "killed now, the crawl goes on from the last commit, and asks for none"
    waiting.committed()
    spool.close()
    assert not (tmp_path / "spool").stat().st_size


def test_redirects_to_another_owner_come_back_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outstanding, "_BYTES_IN_MEMORY", 0)
    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool, in_order=False)
    (lease,) = given = leases([1])
    waiting.add(given)
    answer = waiting.answer(lease)
    assert answer is not None
    led = PageRecord(lease.entry.key, "", captures=(replace(CAPTURE, status=301),), hops=["http://other.example/"])
    answer.page, answer.outcome = replace(led), Outcome.REDIRECTED
    waiting.hold(answer)
    assert answer.page is None, "it is in the file"
    (taken,) = waiting.take(None)
    assert (taken.page, taken.outcome, taken.reason) == (led, Outcome.REDIRECTED, None)
    spool.close()


def test_many_pages_do_not_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outstanding, "_BYTES_IN_MEMORY", 110_000)
    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool)
    given = leases(range(100))
    waiting.add(given)
    for lease in reversed(given):
        answered(waiting, lease, page(lease, b"%05d" % lease.token * 1000))
    kept = [answer for answer in waiting._answers.values() if answer.page is not None]
    assert len(kept) == 20
    waiting.keep()
    spool.close()

    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool)
    waiting.add(given)
    waiting.recall()
    taken = [waiting.take(30) for _ in range(6)]
    assert [len(some) for some in taken] == [20] * 5 + [0]
    htmls = [answer.page.html for some in taken for answer in some if answer.page]
    assert htmls == [b"%05d" % lease.token * 1000 for lease in given]
    assert waiting._bytes == 0
    spool.close()


def test_answers_are_for_the_same_lease_of_the_same_document(tmp_path: Path) -> None:
    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool)
    given = leases([1, 2, 3])
    waiting.add(given)
    for lease in given:
        answered(waiting, lease, page(lease))
    waiting.keep()
    spool.close()
    other = Lease(Entry("http://example.org/other", "", 0.5, 1, None, 1), 2)
    spool = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(spool)
    waiting.add([other, *leases([3, 9])])
    waiting.recall()
    assert [lease.token for lease in waiting.unanswered()] == [2, 9]
    spool.close()


def _record(content: bytes, place: int) -> tuple[Any, bytes, int]:
    """The JSON and the bodies of a record, and where it ends."""
    _, text, bodies, _ = HEAD.unpack_from(content, place)
    start = place + HEAD.size
    return (
        json.loads(content[start : start + text]),
        content[start + text : start + text + bodies],
        start + text + bodies,
    )


def test_a_record_of_something_else_is_asked_for_again(tmp_path: Path) -> None:
    """Whatever value stands in the place of another, with a checksum that holds: who made the JOBDIR made it."""
    draw = random.Random(8)
    made = AnswerSpool(tmp_path / "spool")
    waiting = ReorderBuffer(made)
    given = leases([1, 2])
    waiting.add(given)
    answered(waiting, given[0], page(given[0], CAPTURE.body, CAPTURE))
    waiting.redirected(given[1], Hop("http://example.org/c", (CAPTURE,)))
    waiting.keep()
    made.close()
    content = (tmp_path / "spool").read_bytes()
    told, bodies, end = _record(content, 0)
    records = [(1, told, bodies), (2, *_record(content, end)[:2])]
    assert ["hop" in told for _, told, _ in records] == [False, True]
    lost = 0
    for token, told, bodies in records:
        for at in places(told):
            for other in draw.sample(OTHERS, 6):
                text = json.dumps(with_other(told, at, other)).encode()
                head = HEAD.pack(token, len(text), len(bodies), zlib.crc32(bodies, zlib.crc32(text)))
                (tmp_path / "changed").write_bytes(head + text + bodies)
                spool = AnswerSpool(tmp_path / "changed")
                answer = Answer(given[token - 1])
                found, hops = spool.recall([answer])
                for one in found:
                    spool.restore(one)
                lost += not found and not hops
                spool.close()
    assert lost > 100


@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage"])
def test_what_is_damaged_is_asked_for_again(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "spool"
    spool = AnswerSpool(path)
    waiting = ReorderBuffer(spool)
    given = leases([1, 2, 3])
    waiting.add(given)
    for lease in given[:2]:
        answered(waiting, lease, page(lease))
    waiting.keep()
    size = path.stat().st_size
    answered(waiting, given[2], page(given[2]))
    waiting.keep()
    spool.close()
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[:-1]
    elif damage == "flipped":
        content[-20] ^= 1
    else:
        content[size:] = b"\xff" * 40
    path.write_bytes(content)
    spool = AnswerSpool(path)
    waiting = ReorderBuffer(spool)
    waiting.add(given)
    waiting.recall()
    assert waiting.unanswered() == given[2:]
    assert path.stat().st_size == size
    now = bytearray(path.read_bytes())
    now[-20] ^= 1
    path.write_bytes(now)
    with pytest.raises(ArchiveError, match="spool is damaged; remove it"):
        waiting.take(1 + 1)
    spool.close()
