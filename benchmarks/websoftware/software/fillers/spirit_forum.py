"""Fills a Spirit forum with topics and replies."""

import json
from pathlib import Path

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - after setup()
from django.db import transaction  # noqa: E402
from spirit.category.models import Category  # noqa: E402
from spirit.comment.models import Comment  # noqa: E402
from spirit.core.utils.markdown import Markdown  # noqa: E402
from spirit.topic.models import Topic  # noqa: E402

REPLIES = [
    "Thanks, that solved it for me.",
    "I do not think that this is the whole story; what about older versions?",
    "+1",
    "Moved here from the other board, please search before you post.",
]


def main() -> None:
    content = json.loads(Path("content.json").read_text())
    with transaction.atomic():
        users = [
            get_user_model().objects.create_user(f"member{n}", f"m{n}@example.org", "correct horse 38")
            for n in range(9)
        ]
        categories: dict[str, object] = {}
        for number, told in enumerate(content["topics"]):
            forum = told["forum"]
            if forum not in categories:
                categories[forum] = Category.objects.create(title=forum)
            topic = Topic(pk=number + 1, user=users[number % 9], category=categories[forum], title=told["title"][:200])
            topic.save(force_insert=True)
            texts = [told["text"], *(REPLIES[(number + reply) % 4] for reply in range(told["replies"]))]
            for place, text in enumerate(texts):
                html = Markdown().render(text)
                Comment.objects.create(topic=topic, user=users[(number + place) % 9], comment=text, comment_html=html)
            Topic.objects.filter(pk=topic.pk).update(comment_count=len(texts))


main()
