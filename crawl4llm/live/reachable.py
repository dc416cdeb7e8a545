"""The checks before a live crawl: whether there is a network, and whether the page on the crawler answers."""

from __future__ import annotations

import socket
import urllib.error
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException
from itertools import islice
from typing import Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.urls import host_of
from crawl4llm.live.addresses import NoAnswer, Rules, system_addresses, written_addresses

_HOSTS: Final = 8
"""Hosts of seeds that are looked up at most, one after the other, until one can be asked."""
_UNANSWERED: Final = 2
"""Look-ups without an answer after which there is no network; each takes ten seconds or so."""
_PAGE_SECONDS: Final = 10.0


def check_network(rules: Rules, urls: Iterable[str]) -> None:
    """Raise InputError if none of some URLs can be asked: hosts have no addresses, or there is no route to them.

    Nothing is sent but look-ups of names, and none of these with DNS_HOSTS.
    """
    faults: list[str] = []
    unanswered = 0
    for host in islice(dict.fromkeys(map(host_of, urls)), _HOSTS):
        try:
            fault = _fault(rules, host)
        except NoAnswer as error:
            unanswered += 1
            fault = f"no network: nobody answers a look-up of names ({error})"
            if unanswered == _UNANSWERED:
                raise InputError(f"{fault}; begin again when there is one") from None
        if fault is None:
            return
        faults.append(fault)
    if faults:
        more = f" (likewise {len(faults) - 1} more hosts of seeds)" if len(faults) > 1 else ""
        raise InputError(f"{faults[0]}{more}; nothing can be asked")


def _fault(rules: Rules, host: str) -> str | None:
    """Return why a host cannot be asked; None if it can. Raises NoAnswer."""
    written = written_addresses(host)
    if rules.hosts is not None and not written:
        addresses, source = list(rules.hosts.get(host, ())), "in DNS_HOSTS"
    else:
        addresses, source = written or system_addresses(host), "by DNS"
    if not addresses:
        return f"{host} has no address {source}"
    permitted = [address for address in addresses if rules.permit(address, in_url=bool(written))]
    if not permitted:
        return f"{host} has the address {addresses[0]}, which NETWORK_ALLOWED does not allow"
    if not any(map(_has_route, permitted)):
        return f"no network: there is no route to {permitted[0]}, the address of {host}"
    return None


def _has_route(address: str) -> bool:
    """Return whether the system knows a way to an address; nothing is sent (connect(2) of a datagram socket)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 443))
    except OSError:
        return False
    return True


def fault_of_page(url: str, user_agent: str) -> str | None:
    """Ask for a page; return why it cannot be read, None if it can. It is the operator's own, on the crawler."""
    request = urllib.request.Request(url, headers={"User-Agent": user_agent})  # noqa: S310 - its scheme is checked
    try:
        with urllib.request.urlopen(request, timeout=_PAGE_SECONDS):  # noqa: S310 - likewise
            return None
    except urllib.error.HTTPError as error:
        return f"it is answered with status {error.code}"
    except (OSError, HTTPException, ValueError) as error:
        return str(getattr(error, "reason", None) or error)
