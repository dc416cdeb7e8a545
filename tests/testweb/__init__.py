"""A web to try crawls on: real HTTP servers on 127.0.0.0/8, with the hosts of a real or a generated web.

- ``pages``: where pages come from; ``mazes``: endless ones among them.
- ``misbehaviour``: all that servers do wrong, on demand.
- ``server``: serves HTTP/1.1 and logs each request. ``web``: puts a web together, and runs it.

From tests and benchmarks::

    with running(LocalWeb(tmp_path, DemoPages(2000, 100, 0), misbehaving={"a.test": "status:503"})) as web:
        ...  # crawl web.seeds with DNS_HOSTS=web.hosts_file and NETWORK_ALLOWED=127.0.0.0/8
    requests = read_log(web.log_file)

By hand, from the root of the project: ``python -m tests.testweb --help``.
"""

from tests.testweb.mazes import MazedPages
from tests.testweb.misbehaviour import KINDS, NOWHERE, REFUSING
from tests.testweb.pages import ClosedPages, DemoPages, FewPages, Pages, RealPages
from tests.testweb.server import Logged, read_log
from tests.testweb.web import LocalWeb, running, waits

__all__ = [
    "KINDS",
    "NOWHERE",
    "REFUSING",
    "ClosedPages",
    "DemoPages",
    "FewPages",
    "LocalWeb",
    "Logged",
    "MazedPages",
    "Pages",
    "RealPages",
    "read_log",
    "running",
    "waits",
]
