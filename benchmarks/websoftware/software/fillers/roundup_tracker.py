"""Fills a Roundup tracker with users, keywords and issues."""

import json
from pathlib import Path

from roundup import date, instance

REPLIES = ["Seen here as well.", "Please test the new release.", "Closing, as nobody answered."]


def main() -> None:
    content = json.loads(Path("content.json").read_text())
    database = instance.open(content["tracker"]).open("admin")
    keywords: dict[str, str] = {}
    users = [database.user.create(username=f"member{n}", roles="User", address=f"m{n}@example.org") for n in range(6)]
    for number, told in enumerate(content["issues"]):
        name = told["keyword"]
        if name not in keywords:
            keywords[name] = database.keyword.create(name=name)
        texts = [told["text"], *REPLIES[: told["replies"]]]
        when = date.Date(f"20{10 + number % 12}-0{1 + number % 9}-1{number % 9}")
        messages = [
            database.msg.create(author=users[(number + place) % 6], content=text, date=when)
            for place, text in enumerate(texts)
        ]
        made = database.issue.create(
            title=told["title"],
            messages=messages,
            keyword=[keywords[name]],
            status=str(1 + number % 7),
            priority=str(1 + number % 5),
            assignedto=users[number % 6],
        )
        assert made == str(number + 1), (made, number)
        if number % 100 == 99:
            database.commit()
    database.commit()
    database.close()


main()
