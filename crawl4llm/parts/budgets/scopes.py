"""The scopes of a URL: the owner, prefixes and form that have budgets, determined by the URL alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from crawl4llm.base.domains import owner_of

_FOLDERS: Final = 2
_MOST_NAMES: Final = 8
"""Most parameters whose names are in a form, because they come from the web."""
_LONGEST_NAME: Final = 40
"""Most characters of each."""
_SCRIPT: Final = re.compile(r"/[^/]+\.(?:aspx?|cfm|cgi|dll|exe|fcgi|jspx?|php\d?|phtml|pl|py)(?=/|$)", re.IGNORECASE)
_BETWEEN: Final = re.compile(r"[&;]")
_DIGITS: Final = re.compile(r"\d+")


def scopes_of(url: str) -> list[str]:
    """Return the names of a URL's budgets: its owner, its host, the first two folders of its path, and its form, if it
    has one. Schemes are ignored. A document without a URL has no budgets."""
    owner = owner_of(url)
    if not owner:
        return []
    path, asks, query = url.partition("?")
    path = path.partition("//")[2]
    host, *folders = path.split("/", _FOLDERS + 1)
    scopes = [owner, prefix := f"{host}/"]
    for folder in folders[:-1]:
        prefix += f"{folder}/"
        scopes.append(prefix)
    form = _form_of_query(path, query) if asks else _form_of_path(path)
    return [*scopes, form] if form else scopes


def is_nested(scopes: Sequence[str]) -> bool:
    """Return whether the last of a URL's scopes lies in the one before it, which may be false for the form of a URL
    with folders."""
    return len(scopes) < 3 or scopes[-1].startswith(scopes[-2])


def scopes_beside(scopes: Sequence[str], page: str | None) -> list[str]:
    """Return those scopes of the page on which a document was found that belong to its owner but are not its own.

    ``page``: the key of that page; a key that is not a URL has no scopes.
    """
    found_on = scopes_of(page) if page and scopes else []
    return [scope for scope in found_on if scope not in scopes] if found_on[:1] == list(scopes[:1]) else []


def _form_of_query(path: str, query: str) -> str:
    """Return the host, the script and the names of the parameters: ``example.org/index.php?action&title``.

    Values are left out, and so is a path that is not a script's, because both may differ for each post
    (``/2031/05/title/?replytocom=7``). ``path`` begins with the host.
    """
    host = path.partition("/")[0]
    found = _SCRIPT.search(path, len(host))
    names = {_name(part) for part in _BETWEEN.split(query, _MOST_NAMES)[:_MOST_NAMES]}
    return f"{path[: found.end()] if found else f'{host}/'}?{'&'.join(sorted(names))}"


def _form_of_path(path: str) -> str:
    """Return the kind of a page by its path; empty if the path does not tell.

    Of three names or more the host, the first and the last one count: ``example.org/shop/*/reviews``, for
    ``/shop/shoes/reviews/`` and ``/shop/hats/reviews/``. Of fewer all count, if the last one has a number:
    ``example.org/message#``, beside ``example.org/issue#``.
    """
    *names, last = filter(None, path.split("/"))
    kind = _without_numbers(last)
    if len(names) > _FOLDERS:
        return f"{names[0]}/{names[1]}/*/{kind}"
    return "/".join([*names, kind]) if names and kind != last[:_LONGEST_NAME] else ""


def _name(parameter: str) -> str:
    """Return the name of a parameter; empty if it is only a value."""
    name, named, _ = parameter.partition("=")
    return _without_numbers(name) if named else ""


def _without_numbers(name: str) -> str:
    """Return a name with ``#`` for each number, cut to the longest length."""
    return _DIGITS.sub("#", name[:_LONGEST_NAME])
