"""Programs for a shell, which are forked from a process that has all imported: the real ones take a second to start."""

from __future__ import annotations

import json
import socketserver
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import scrapy_server
from crawl_helpers import TIMEOUT

CODE = {
    "scrapy": "import sys; sys.argv[0] = {path!r}; from scrapy.cmdline import execute; sys.exit(execute())",
    "crawl4llm": "import sys; sys.argv[0] = {path!r}; from crawl4llm.__main__ import main; sys.exit(main())",
}
"""What the scripts do that pip installs."""
_CLIENT = """\
#!{python} -S
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    server.sendall(json.dumps([{code!r}, sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    status, out, err = json.load(server.makefile())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
"""


class _Forking(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        code, args, cwd, env = json.loads(self.rfile.readline())
        done = scrapy_server.run(args, Path(cwd), env, TIMEOUT, program=("-c", code))
        self.wfile.write(json.dumps([done.returncode, done.stdout, done.stderr]).encode())


@contextmanager
def forked_programs(folder: Path, *names: str) -> Iterator[None]:
    """Programs in a new folder: ``scrapy``, ``crawl4llm`` or both."""
    folder.mkdir()
    with tempfile.TemporaryDirectory() as short:  # the path of a socket has 107 bytes at most
        address = f"{short}/socket"
        for name in names:
            program = folder / name
            code = CODE[name].format(path=str(program))
            program.write_text(_CLIENT.format(python=sys.executable, address=address, code=code))
            program.chmod(0o755)
        with socketserver.ThreadingUnixStreamServer(address, _Forking) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield
            server.shutdown()
