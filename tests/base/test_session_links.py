"""Links without the sessions that answers begin."""

import pytest

from crawl4llm.base.html_tree import HtmlLink
from crawl4llm.base.session_links import without_sessions

PAGE = "https://wiki.example/doku.php?id=start"
PHP = "852l554us1krtl2rtpa242fooo"
JAVA = "C0FFEE00112233445566778899AABBCC"
HEADERS = [
    (b"Set-Cookie", f"DokuWiki={PHP}; path=/; secure; HttpOnly".encode()),
    (b"set-cookie", f"JSESSIONID={JAVA}".encode()),
    (b"Set-Cookie", b"theme=dark"),
]


def without(*urls: str, headers: list[tuple[bytes, bytes]] = HEADERS) -> list[str]:
    found = without_sessions([HtmlLink(url, "", boilerplate=False) for url in urls], PAGE, headers)
    return [link.url for link in found]


@pytest.mark.parametrize(
    ("url", "plain"),
    [
        (f"https://wiki.example/doku.php?id=a&DokuWiki={PHP}", "https://wiki.example/doku.php?id=a"),
        (f"https://wiki.example/doku.php?DokuWiki={PHP}&id=a", "https://wiki.example/doku.php?id=a"),
        (f"https://wiki.example/a?DokuWiki={PHP}", "https://wiki.example/a"),
        (f"https://wiki.example/a;jsessionid={JAVA}?b=1", "https://wiki.example/a?b=1"),
    ],
)
def test_what_the_answer_sets_as_a_cookie_is_no_part_of_an_address(url: str, plain: str) -> None:
    assert without(url) == [plain]
    assert without(plain, url) == [plain]


@pytest.mark.parametrize(
    "url",
    [
        f"https://other.example/a?DokuWiki={PHP}",
        f"https://wiki.example/a?id={PHP}",
        "https://wiki.example/a?DokuWiki=another",
        "https://wiki.example/a?theme=dark",
    ],
)
def test_all_else_stays(url: str) -> None:
    assert without(url) == [url]
    assert without(f"https://wiki.example/a?DokuWiki={PHP}", headers=[]) == [f"https://wiki.example/a?DokuWiki={PHP}"]


def test_a_page_does_not_link_to_itself() -> None:
    assert without(f"{PAGE}&DokuWiki={PHP}") == []
