"""The checks of settings: functions from a value as Scrapy has it to the one that is used, or ValueError; and how a
setting is written down with its check."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial
from ipaddress import ip_address, ip_network
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import given_path, parse_json
from crawl4llm.base.shapes import LONGEST_PART, is_name_part
from crawl4llm.policies import SCORER_PREFIX, known_policies, load_policy
from crawl4llm.scoring import SCORERS, load_scorer_class, parse_weights

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from crawl4llm.options import Options

Check = Callable[[Any], Any]


def option(
    default: Any,
    check: Check,
    meaning: str,
    *,
    fixed: bool = False,
    imports: Callable[[Any], bool] | None = None,
    shown: Callable[[Any], Any] | None = None,
) -> Any:
    """Return the field of a setting; a ``fixed`` one may not change when a crawl is resumed.

    ``imports`` says whether a value has a dotted path, whose code would run (see crawl4llm.engine.settings).
    ``shown``: what an error says of a value that may hold a password.
    """
    facts = {"check": check, "meaning": meaning, "fixed": fixed, "imports": imports, "shown": shown or (lambda v: v)}
    return field(default=default, metadata=facts)


fixed = partial(option, fixed=True)

_DOTTED_NAMES = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")
_LOOPBACK = "127.0.0.1"


def text(value: Any) -> str:
    """Take any non-empty string or path."""
    if not isinstance(value, str | os.PathLike):
        raise ValueError("must be a string")  # noqa: TRY004 - the one kind of error that checks raise
    if not str(value).strip():
        raise ValueError("must not be empty")
    try:
        os.fsencode(value)
    except UnicodeEncodeError:  # lone surrogates, which JSON can hold
        raise ValueError("must be text") from None
    return str(value)


def optional_text(value: Any) -> str | None:
    """Take a string or path, or None where it is not set."""
    return None if value is None or value == "" else text(value)


def text_or_empty(value: Any) -> str:
    """Take a string or path, which may be empty."""
    return "" if value == "" else text(value)


def file_name_part(value: Any) -> str:
    """Take a string that can stand in a file name, and leaves room for the rest of it."""
    if len(text(value).encode()) > LONGEST_PART:
        raise ValueError(f"must be {LONGEST_PART} bytes at most, to leave room for the rest of file names")
    if not is_name_part(text(value)):
        raise ValueError("must be part of a file name, without slashes and control characters")
    return text(value)


def networks(value: Any) -> tuple[str, ...]:
    """Take networks like ``10.1.0.0/16`` or ``fd00::/8``, and addresses, divided by commas, or a sequence of them."""
    given = value.split(",") if isinstance(value, str) else value
    if not (isinstance(given, list | tuple) and all(isinstance(network, str) for network in given)):
        raise ValueError("must be networks, divided by commas, such as 127.0.0.1/32")
    found = []
    for network in filter(None, map(str.strip, given)):
        try:
            found.append(str(ip_network(network)))
        except ValueError:
            fault = f"{network!r} is not one"
            raise ValueError(f"must be networks like 127.0.0.1/32, with no bits behind the prefix; {fault}") from None
    return tuple(dict.fromkeys(found))


def address(value: Any) -> str | None:
    """Take a port of the loopback interface, or an IP address and a port; None, or nothing, where it is not set. Return
    both, with a colon between."""
    if value is None or value == "":
        return None
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
    """Take a boolean, spelt as for Scrapy's ``getbool``."""
    spelt = {"1": True, "true": True, "0": False, "false": False}.get(str(value).strip().lower())
    if spelt is None:
        raise ValueError("must be True or False (or 1 or 0)")
    return spelt


def whole(minimum: int, most: int | None = None) -> Check:
    """Return the check of a whole number of at least ``minimum``, and of ``most`` at most."""

    def check(value: Any) -> int:
        try:
            number = int(str(value).replace("_", ""))
        except ValueError:
            number = minimum - 1
        if number < minimum:
            wanted = {0: "0 or a positive integer", 1: "a positive integer"}.get(minimum, f"an integer >= {minimum}")
            raise ValueError(f"must be {wanted}")
        if most is not None and number > most:
            raise ValueError(f"must be {most:,} at most")
        return number

    return check


def seconds(value: Any) -> float:
    """Take a positive number of seconds."""
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError("must be a positive number of seconds")
    return number


def waits(value: Any) -> tuple[float, ...]:
    """Take one positive number of seconds or several, divided by commas, or a sequence of them."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not given:
        raise ValueError("must be numbers of seconds, divided by commas")
    return tuple(seconds(number) for number in given)


def optional_number(value: Any) -> float | None:
    """Take a finite number, or None where it is not set."""
    try:
        number = 0.0 if value is None or value == "" else float(value)
    except (OverflowError, TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError("must be a number")
    return None if value is None or value == "" else number


def share(value: Any) -> float:
    """Take a number from 0 to 1."""
    try:
        return float(real_number(0, math.nextafter(1, 2))(value))
    except ValueError:
        raise ValueError("must be a number from 0 to 1") from None


def real_number(minimum: float, below: float = float("inf")) -> Check:
    """Return the check of a number from ``minimum`` on, and below ``below``."""

    def check(value: Any) -> float:
        try:
            checked = float(value)
        except (OverflowError, TypeError, ValueError):
            checked = float("nan")
        if not minimum <= checked < below:
            wanted = f"of at least {minimum:g}" if below == float("inf") else f"from {minimum:g} to below {below:g}"
            raise ValueError(f"must be a number {wanted}")
        return checked

    return check


def words(value: Any) -> list[str]:
    """Take the parts of a text divided by commas, or of a sequence."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple):
        raise ValueError("must be a list, divided by commas")  # noqa: TRY004 - the one kind of error that checks raise
    return [word for word in (str(one).strip() for one in given) if word]


def files(value: Any) -> tuple[str, ...]:
    """Take paths of files, divided by commas, or a sequence of them."""
    return tuple(dict.fromkeys(str(given_path(text(one))) for one in words(value)))


def terms(value: Any) -> tuple[str, ...]:
    """Take words or phrases, divided by commas, or a sequence of them; none where it is empty."""
    given = value.split(",") if isinstance(value, str) else value
    if not (isinstance(given, list | tuple) and all(isinstance(term, str) for term in given)):
        raise ValueError("must be words or phrases, divided by commas")
    return tuple(" ".join(term.split()) for term in given if term.strip())


def scorer_weights(value: Any) -> str:
    """Take scorers and their weights; see :func:`crawl4llm.scoring.parse_weights`. May be empty."""
    if value != "":
        parse_weights(str(value))
    return str(value)


def one_of(*known: str) -> Check:
    """Return the check of one of some words."""

    def check(value: Any) -> str:
        if str(value) not in known:
            raise ValueError(f"is not known; known are: {', '.join(known)}")
        return str(value)

    return check


def some_of(*known: str) -> Check:
    """Return the check of some of a few words, divided by commas, or a sequence of them; none where it is empty."""

    def check(value: Any) -> tuple[str, ...]:
        given = value.split(",") if isinstance(value, str) else value
        if not isinstance(given, list | tuple):
            raise ValueError("must be words, divided by commas")  # noqa: TRY004 - the one kind of error that checks raise
        words = dict.fromkeys(str(word).strip() for word in given)
        return tuple(one_of(*known)(word) for word in words if word)

    return check


def policy_name(value: Any) -> str:
    """Take a policy of crawl4llm.policies, ``scorer:`` and a scorer, or the dotted path of a policy class."""
    if str(value).startswith(SCORER_PREFIX):
        return SCORER_PREFIX + scorer_name(str(value).removeprefix(SCORER_PREFIX))
    return str(value) if is_dotted(value) else str(one_of(*known_policies())(value))


def scorer_name(value: Any) -> str:
    """Take a scorer of crawl4llm.scoring, or the dotted path of a scorer class."""
    return str(value) if is_dotted(value) else str(one_of(*SCORERS)(value))


def is_dotted(value: Any) -> bool:
    """Return whether a policy's or scorer's name is a dotted path, which is imported."""
    return "." in str(value)


def is_corpus_class(value: Any) -> bool:
    """Return whether CORPUS is the dotted path of a class, which is imported: names with dots between, and no file."""
    return bool(_DOTTED_NAMES.fullmatch(str(value))) and not os.path.lexists(str(value))


def weighs_dotted(value: Any) -> bool:
    """Return whether one of some scorers with weights is a dotted path."""
    return any(is_dotted(part.rpartition(":")[0]) for part in str(value).split(","))


def settings_object(value: Any) -> dict[str, Any]:
    """Take settings by name, or a JSON object of them."""
    try:
        given = parse_json(value) if isinstance(value, str) else value
    except ValueError:
        given = None
    if not isinstance(given, Mapping):
        raise ValueError("must be a JSON object")  # noqa: TRY004 - the one kind of error that checks raise
    return dict(given)


_CHECKS: dict[type, Check] = {
    bool: flag,
    int: whole(-sys.maxsize),
    float: real_number(-sys.float_info.max),
    str: text_or_empty,
}
"""The check of a setting that a class of somebody else names, by the type of its default."""


def own_settings(
    settings: BaseSettings, options: Options, others: Mapping[str, Callable[[str], type]] = MappingProxyType({})
) -> dict[str, Any] | None:
    """Return the settings that classes of somebody else name in ``SETTINGS``; None if there are none. These are policy,
    scorers, and ``others``: what loads the class, by dotted path.

    A value is what was given by its name, else what OWN_SETTINGS has (of a run that is taken up), else the default.
    Raises InputError.
    """
    names = [options.scorer, options.url_policy.removeprefix(SCORER_PREFIX)]
    names += parse_weights(options.ensemble_weights) if options.ensemble_weights else []
    names += others
    recorded = options.own_settings or {}
    own: dict[str, Any] = {}
    for owner in dict.fromkeys(filter(is_dotted, names)):
        load = others.get(owner) or (load_policy if owner == options.url_policy else load_scorer_class)
        try:
            defaults = getattr(load(owner), "SETTINGS", {})
        except InputError:
            continue  # said by what needs it
        for name, default in defaults.items():
            if not name.isupper() or type(default) not in _CHECKS:
                wanted = "NAME: a bool, int, float or str"
                raise InputError(f"{owner}: SETTINGS has {name!r}: {default!r}; it takes {wanted}")
            if hasattr(options, name.lower()) or settings.getpriority(name) == 0:
                raise InputError(f"{owner}: SETTINGS has {name}, which is a setting of crawl4llm or Scrapy")
            value, priority = settings.get(name), settings.getpriority(name) or 0
            if value is None or (name in recorded and priority < (settings.getpriority("OWN_SETTINGS") or 0)):
                value = recorded.get(name, default)
            try:
                own[name] = _CHECKS[type(default)](value)
            except ValueError as error:
                raise InputError(f"{name} = {value!r:.300} {error}") from None
    return own or None
