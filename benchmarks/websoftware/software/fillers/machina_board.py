"""Fills a django-machina board with forums, topics and replies."""

import json
from pathlib import Path

import django

django.setup()

from django.contrib.auth import get_user_model  # noqa: E402 - after setup()
from django.db import transaction  # noqa: E402
from machina.core.db.models import get_model  # noqa: E402

REPLIES = ["Thanks!", "Could you say which version this is about?", "Works here.", "See the manual, too."]


def main() -> None:
    content = json.loads(Path("content.json").read_text())
    forum_model, topic_model, post_model = (
        get_model("forum", "Forum"),
        get_model("forum_conversation", "Topic"),
        get_model("forum_conversation", "Post"),
    )
    with transaction.atomic():
        users = [get_user_model().objects.create_user(f"member{n}", password="correct horse 38") for n in range(7)]
        forums = {name: forum_model.objects.create(name=name.capitalize(), type=0) for name in content["forums"]}
        permission, granted = (
            get_model("forum_permission", "ForumPermission"),
            get_model("forum_permission", "UserForumPermission"),
        )
        for codename in ("can_see_forum", "can_read_forum"):
            granted.objects.create(
                permission=permission.objects.get(codename=codename), anonymous_user=True, has_perm=True, forum=None
            )
        for number, told in enumerate(content["topics"]):
            forum, user = forums[told["forum"]], users[number % 7]
            topic = topic_model.objects.create(
                forum=forum, subject=told["title"], poster=user, type=0, status=0, approved=True
            )
            assert topic.pk == number + 1, (topic.pk, number)
            for place, text in enumerate([told["text"], *(REPLIES[(number + n) % 4] for n in range(told["replies"]))]):
                subject = told["title"] if place == 0 else f"Re: {told['title']}"
                post_model.objects.create(
                    topic=topic, poster=users[(number + place) % 7], subject=subject, content=text, approved=True
                )


main()
