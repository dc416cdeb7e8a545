"""How a setting is declared: its default, its meaning and its check.

A check turns a value as Scrapy has it into the value that is used. It raises ValueError for a wrong value.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from importlib import import_module
from ipaddress import ip_address, ip_network
from typing import Any

from crawl4llm.base.errors import as_input_error
from crawl4llm.base.input_files import given_path, json_or_none
from crawl4llm.base.shapes import LARGEST_WHOLE, LONGEST_PART, NUMBER, is_name_part, is_of

Check = Callable[[Any], Any]


def option(
    default: Any, check: Check, *, fixed: bool = False, imports: Check | None = None, shown: Check | None = None
) -> Any:
    """Return the field of a setting; the docstring below it is its meaning. A ``fixed`` setting may not change when a
    crawl is resumed.

    ``imports`` says whether a value contains a dotted path, whose code would run (see crawl4llm.engine.settings).
    ``shown`` is the text that errors show for a value that may hold a password.
    """
    facts = {"check": check, "fixed": fixed, "imports": imports, "shown": shown or (lambda v: v)}
    return field(default=default, metadata=facts)


fixed = partial(option, fixed=True)

_DOTTED_NAMES = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_LOOPBACK = "127.0.0.1"


def text(value: Any) -> str:
    """Check any non-empty string or path."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError("must be a string")  # noqa: TRY004 - the one kind of error that checks raise
    if not str(value).strip():
        raise ValueError("must not be empty")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # lone surrogates, which JSON can hold
        raise ValueError("must be text") from None
    return str(value)


def optional(check: Check) -> Check:
    """Return a check that also accepts an empty value, which stands for None: not set."""
    return lambda value: None if value is None or value == "" else check(value)


optional_text = optional(text)


def text_or_empty(value: Any) -> str:
    """Check a string or path, which may be empty."""
    return "" if value == "" else text(value)


def file_name_part(value: Any) -> str:
    """Check a string that can be part of a file name and leaves room for the rest of it."""
    if len(text(value).encode()) > LONGEST_PART:
        raise ValueError(f"must be {LONGEST_PART} bytes at most, to leave room for the rest of file names")
    if not is_name_part(text(value)):
        raise ValueError("must be part of a file name, without slashes and control characters")
    return text(value)


def _several(value: Any, wanted: str, kind: type = object) -> Sequence[Any]:
    """Return the parts of a text divided by commas, or a sequence of values of a kind."""
    given = value.split(",") if isinstance(value, str) else value
    if not (isinstance(given, list | tuple) and all(isinstance(one, kind) for one in given)):
        raise ValueError(f"must be {wanted}")
    return given


def networks(value: Any) -> tuple[str, ...]:
    """Check networks like ``10.1.0.0/16`` or ``fd00::/8``, and addresses: a sequence, or a text divided by commas."""
    found = []
    for network in filter(
        None, map(str.strip, _several(value, "networks, divided by commas, such as 127.0.0.1/32", str))
    ):
        try:
            found.append(str(ip_network(network)))
        except ValueError:
            fault = f"{network!r} is not one"
            raise ValueError(f"must be networks like 127.0.0.1/32, with no bits behind the prefix; {fault}") from None
    return tuple(dict.fromkeys(found))


@optional
def address(value: Any) -> str:
    """Check a port of the loopback interface, or an IP address and a port. Return both, with a colon between."""
    host, _, port = str(value).rpartition(":")
    try:
        number = int(port)
        ip_address(host.strip("[]") or _LOOPBACK)
    except ValueError:
        number = 0
    if not 0 < number < 1 << 16:
        raise ValueError("must be a port from 1 to 65535, or an IP address and a port, such as 0.0.0.0:9410")
    return f"{host.strip('[]') or _LOOPBACK}:{number}"


def flag(value: Any) -> bool:
    """Check a boolean, spelt as for Scrapy's ``getbool``."""
    spelt = {"1": True, "true": True, "0": False, "false": False}.get(str(value).strip().lower())
    if spelt is None:
        raise ValueError("must be True or False (or 1 or 0)")
    return spelt


def whole(minimum: int, most: int = LARGEST_WHOLE) -> Check:
    """Return the check of a whole number of at least ``minimum``, and of ``most`` at most."""

    def check(value: Any) -> int:
        try:
            number = int(str(value).replace("_", ""))
        except ValueError:
            number = minimum - 1
        if number < minimum:
            wanted = {0: "0 or a positive integer", 1: "a positive integer"}.get(minimum, f"an integer >= {minimum}")
            raise ValueError(f"must be {wanted}")
        if number > most:
            raise ValueError(f"must be {most:,} at most")
        return number

    return check


def _number(value: Any, wanted: str, holds: Callable[[float], bool]) -> float:
    """Return a number for which ``holds`` is true; it is not for NaN."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not holds(number):
        raise ValueError(f"must be {wanted}")
    return number


def seconds(value: Any) -> float:
    """Check a positive number of seconds."""
    return _number(value, "a positive number of seconds", lambda number: 0 < number < math.inf)


def waits(value: Any) -> tuple[float, ...]:
    """Check positive numbers of seconds: a sequence, or a text divided by commas."""
    if not (given := _several(value, wanted := "numbers of seconds, divided by commas")):
        raise ValueError(f"must be {wanted}")
    return tuple(map(seconds, given))


@optional
def optional_number(value: Any) -> float:
    """Check a finite number."""
    return _number(value, "a number", is_of(NUMBER))


def share(value: Any) -> float:
    """Check a number from 0 to 1."""
    return _number(value, "a number from 0 to 1", lambda number: 0 <= number <= 1)


def real_number(minimum: float, below: float = math.inf) -> Check:
    """Return the check of a number of at least ``minimum`` and less than ``below``."""
    wanted = f"of at least {minimum:g}" if below == math.inf else f"from {minimum:g} to below {below:g}"
    return lambda value: _number(value, f"a number {wanted}", lambda number: minimum <= number < below)


def words(value: Any) -> list[str]:
    """Return the parts of a text divided by commas, or of a sequence."""
    return [word for one in _several(value, "a list, divided by commas") if (word := str(one).strip())]


def files(value: Any) -> tuple[str, ...]:
    """Check paths of files: a sequence, or a text divided by commas."""
    return tuple(dict.fromkeys(str(given_path(text(one))) for one in words(value)))


def terms(value: Any) -> tuple[str, ...]:
    """Check words or phrases: a sequence, or a text divided by commas; it may be empty."""
    given = _several(value, "words or phrases, divided by commas", str)
    return tuple(" ".join(term.split()) for term in given if term.strip())


def one_of(*known: str) -> Check:
    """Return the check of one of the words ``known``."""

    def check(value: Any) -> str:
        if str(value) not in known:
            raise ValueError(f"is not known; known are: {', '.join(known)}")
        return str(value)

    return check


def some_of(*known: str) -> Check:
    """Return the check of some of the words ``known``: a sequence, or a text divided by commas; it may be empty."""

    def check(value: Any) -> tuple[str, ...]:
        words = dict.fromkeys(str(word).strip() for word in _several(value, "words, divided by commas"))
        return tuple(one_of(*known)(word) for word in words if word)

    return check


def loaded(dotted: str, what: str, hint: str = "", *, needs: str = "__doc__") -> Any:
    """Return the object at a dotted path, which must have the attribute ``needs``. Raises InputError if there is no
    such object: ``what`` cannot be done, the reason, and the ``hint``."""
    module, _, name = dotted.rpartition(".")
    with as_input_error(what, form=f"{{}} ({{}}){hint}", errors=(ImportError, AttributeError, TypeError, ValueError)):
        found = getattr(import_module(module), name)
        _ = getattr(found, needs)
    return found


def is_dotted(value: Any) -> bool:
    """Return whether the name of a policy or scorer is a dotted path, which would be imported."""
    return "." in str(value)


def is_corpus_class(value: Any) -> bool:
    """Return whether CORPUS is the dotted path of a class, which would be imported: names with dots between, and no
    file."""
    return bool(_DOTTED_NAMES.fullmatch(str(value))) and not os.path.lexists(str(value))


def settings_object(value: Any) -> dict[str, Any]:
    """Check settings by name, or a JSON object of them."""
    given = json_or_none(value) if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise ValueError("must be a JSON object")  # noqa: TRY004 - the one kind of error that checks raise
    return dict(given)
