"""Archives of mailing lists: MHonArc's pages of a mailbox, or public-inbox, both Debian's.

Option ``archive`` is ``mhonarc`` or ``public-inbox``. A text is a message; every third one answers an earlier one.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from email.message import EmailMessage
from pathlib import Path

from benchmarks.websoftware.markup import PLAIN
from benchmarks.websoftware.site import Backend, Fill, Shown, Site
from benchmarks.websoftware.software._common import day, run, split
from benchmarks.websoftware.texts import Text

NEEDS = ["/usr/bin/mhonarc", "/usr/bin/public-inbox-httpd", "/usr/bin/public-inbox-init", "/usr/bin/git"]
_LIST = "discuss"


def paths(site: Site, texts: Sequence[Text]) -> list[str]:
    """Return the paths of the messages."""
    if site.options["archive"] == "mhonarc":
        return [f"/{_LIST}/msg{number:05}.html" for number in range(len(texts))]
    return [f"/{_LIST}/{text.id}@example.org/" for text in texts]


def _message(fill: Fill, number: int, of: int, before: Fill | None) -> EmailMessage:
    message = EmailMessage()
    message["From"] = f"Member {number % 23} <member{number % 23}@example.org>"
    message["To"] = f"{_LIST}@lists.example.org"
    message["Subject"] = f"Re: {before.title}" if before else fill.title
    message["Message-ID"] = f"<{fill.text.id}@example.org>"
    year, month, date = day(number, of).split("-")
    names = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    message["Date"] = f"{date} {names[int(month) - 1]} {year} 10:{number % 60:02}:00 +0000"
    if before:
        message["In-Reply-To"] = message["References"] = f"<{before.text.id}@example.org>"
    message.set_content(f"{fill.title}\n\n{PLAIN.whole(fill)}\n-- \nMember {number % 23}\n", charset="utf-8")
    return message


def build(site: Site, place: Path, fills: Sequence[Fill]) -> None:
    """Write the messages and hand them to the archive's program."""
    messages = [
        _message(fill, number, len(fills), fills[number - 1 - number % 7] if number % 3 == 2 and number > 8 else None)
        for number, fill in enumerate(fills)
    ]
    if site.options["archive"] == "mhonarc":
        _mhonarc(site, place, messages)
    else:
        _public_inbox(site, place, messages)


def _mhonarc(site: Site, place: Path, messages: Sequence[EmailMessage]) -> None:
    box, pages = place / "discuss.mbox", place / "www" / _LIST
    pages.mkdir(parents=True)
    with box.open("wb") as file:
        for message in messages:
            body = re.sub(rb"^From ", b">From ", message.as_bytes(), flags=re.MULTILINE)
            file.write(b"From member@example.org Mon Jan  1 00:00:00 2018\n" + body + b"\n")
    # by the order in the mailbox a message has the number that its path has
    run(
        ["mhonarc", "-outdir", pages, "-nosort", "-title", site.options["title"], "-multipg", "-idxsize", "50", box],
        place,
    )
    first = f'<p><a href="/{_LIST}/maillist.html">{_LIST}</a> <a href="/{_LIST}/threads.html">by thread</a></p>'
    (place / "www/index.html").write_text(f"<html><title>{site.options['title']}</title><h1>Lists</h1>{first}</html>")


def _public_inbox(site: Site, place: Path, messages: Sequence[EmailMessage]) -> None:
    home = {"HOME": str(place), "PI_DIR": str(place / "settings"), "ORIGINAL_RECIPIENT": f"{_LIST}@lists.example.org"}
    inbox = place / "inbox"
    command: list[str | Path] = [
        "public-inbox-init",
        "-V2",
        "-L",
        "basic",
        _LIST,
        inbox,
        f"{site.url}/{_LIST}",
        f"{_LIST}@lists.example.org",
    ]
    run(command, place, home)
    settings: list[str | Path] = ["git", "config", "-f", place / "settings/config"]
    run([*settings, "publicinboxmda.spamcheck", "none"], place)
    run([*settings, "publicinbox.wwwlisting", "all"], place)
    for message in messages:
        deliver = ["public-inbox-mda", "--no-precheck"]
        subprocess.run(deliver, input=message.as_bytes(), env={**os.environ, **home}, cwd=place, check=True)
    run(["public-inbox-index", inbox], place, home)


def backend(site: Site, place: Path) -> Backend:
    """Serve MHonArc's files, or public-inbox's own server."""
    if site.options["archive"] == "mhonarc":
        return Backend(place / "www")
    socket = site.options["socket"]
    environment = {"HOME": str(place), "PI_DIR": str(place / "settings")}
    command = ["public-inbox-httpd", f"--listen={socket}", "-W1"]
    return Backend(place, "proxy", socket=socket, commands=[command], environment=environment)


def read(site: Site, target: str) -> Shown:
    """Tell a message, a view of one, and what is none."""
    path, query = split(target)
    if site.options["archive"] == "mhonarc":
        if re.fullmatch(rf"/{_LIST}/msg\d+\.html", path):
            return Shown(path, "page")
        return Shown(None, "front page" if path in {"/", "/index.html"} else "list of messages")
    if found := re.fullmatch(rf"(/{_LIST}/[^/]+@example\.org/)(.*)", path):
        view = found[2].strip("/")
        if view in {"raw", "t.mbox.gz", "t.atom"}:
            return Shown(None, view)
        kind = {"": "page", "T": "thread", "t": "thread", "R": "reply instructions"}.get(view, "other")
        return Shown(found[1], kind if not query else f"{min(query)}=")
    return Shown(None, "search" if "q" in query else "list of messages" if path.startswith(f"/{_LIST}") else "other")
