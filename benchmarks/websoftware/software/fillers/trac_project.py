"""Fills a Trac environment with wiki pages and tickets."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path

from trac.env import open_environment
from trac.ticket.model import Ticket
from trac.wiki.model import WikiPage

COMMENTS = ["Seen here as well.", "Fixed in the next release, please test."]


def main() -> None:
    content = json.loads(Path("content.json").read_text())
    environment = open_environment(content["environment"])
    day = datetime(2015, 3, 1, tzinfo=timezone.utc)
    with environment.db_transaction:
        for number, told in enumerate(content["pages"]):
            when = day + timedelta(days=3 * number)
            kind, _, name = told["path"].strip("/").partition("/")
            if kind == "wiki":
                page = WikiPage(environment, name)
                page.text = f"= {told['title']}\n\n{told['text']}"
                page.save(f"user{number % 5}", "imported", t=when)
                continue
            ticket = Ticket(environment)
            ticket.populate(
                {
                    "summary": told["title"],
                    "description": told["text"],
                    "reporter": f"user{number % 5}",
                    "component": told["component"],
                    "type": "defect",
                    "priority": "major",
                    "status": "new",
                    "milestone": f"milestone{1 + number % 4}",
                    "keywords": "docs",
                }
            )
            assert ticket.insert(when=when) == int(name), (ticket.id, name)
            for comment in COMMENTS[: told["comments"]]:
                ticket.save_changes(f"user{(number + 1) % 5}", comment, when + timedelta(hours=len(comment)))
        pages = [told for told in content["pages"] if told["path"].startswith("/wiki/")]
        start = WikiPage(environment, "WikiStart")
        start.text = (
            "= Welcome\n\n" + "\n".join(f" * [{p['path']} {p['title']}]" for p in pages[:25]) + "\n\nTitleIndex\n"
        )
        start.save("admin", "welcome")


main()
