"""Addresses: which of them a crawl may connect to, and the entries of a hosts file.

A page can name any address, also by a host name whose owner points it to 127.0.0.1. A crawler that follows reads what
its own machine and network show to nobody else. So only addresses of the public Internet are asked.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final

from crawl4llm.base.errors import InputError
from crawl4llm.base.input_files import input_lines
from crawl4llm.base.urls import host_named
from crawl4llm.options import Options

_NOT_PUBLIC: Final = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",  # this network (RFC 791); Linux takes 0.0.0.0 for itself
        "10.0.0.0/8",  # private (RFC 1918), as are 172.16/12 and 192.168/16
        "100.64.0.0/10",  # shared by a provider's customers (RFC 6598)
        "127.0.0.0/8",  # loopback (RFC 1122)
        "169.254.0.0/16",  # link-local (RFC 3927), with the metadata services of clouds
        "172.16.0.0/12",
        "192.0.0.0/24",  # protocol assignments (RFC 6890)
        "192.0.2.0/24",  # documentation (RFC 5737), as are 198.51.100/24 and 203.0.113/24
        "192.88.99.0/24",  # relays of 6to4, given up (RFC 7526)
        "192.168.0.0/16",
        "198.18.0.0/15",  # benchmarks of networks (RFC 2544)
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast (RFC 5771)
        "240.0.0.0/4",  # reserved (RFC 1112), with the broadcast address
        "2001::/23",  # protocol assignments (RFC 2928), with Teredo's tunnels (RFC 4380)
        "2001:db8::/32",  # documentation (RFC 3849, RFC 9637), as is 3fff::/20
        "3fff::/20",
    )
]
"""IANA's registry of special-purpose addresses (RFC 6890), and multicast; for IPv6, those in _PUBLIC_6."""
_PUBLIC_6: Final = IPv6Network("2000::/3")
"""All that is given out as global unicast (RFC 4291, 2.4); loopback, link-local and private ones lie outside."""
_NAT64: Final = IPv6Network("64:ff9b::/96")
"""Prefix behind which a translator reaches IPv4 (RFC 6052, 2.1)."""
_MOST_ADDRESSES: Final = 8
"""Addresses of one host that are tried; more would not help to reach it."""
_LONGEST_LINE: Final = 4096
_DELIMITERS: Final = set(":/?#[]@")
"""Of the parts of a URL (RFC 3986, 2.2)."""
_HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class NoAnswer(Exception):
    """It is not known whether a host has addresses: the look-up failed for now, or took too long."""


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether an address is of the public Internet; one with an IPv4 address in it, whether that is.

    Such are IPv4-mapped ones (RFC 4291, 2.5.5.2), those of 6to4 (RFC 3056, 2) and of NAT64 (RFC 6052, 2.2).
    """
    if isinstance(address, IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in _NAT64:
            inner = IPv4Address(int(address) & 0xFFFF_FFFF)
        if inner is not None:
            return is_public(inner)
        if address not in _PUBLIC_6:
            return False
    return not any(address in network for network in _NOT_PUBLIC)


@dataclass(frozen=True)
class Rules:
    """The rules of NETWORK_ALLOWED and DNS_HOSTS."""

    allowed: Sequence[IPv4Network | IPv6Network] = ()
    hosts: Mapping[str, Sequence[str]] | None = None
    """Addresses by host, if no other hosts are to be known."""

    @classmethod
    def of(cls, options: Options) -> Rules:
        """Return the rules of the settings. Raises InputError if the file of DNS_HOSTS cannot be used."""
        hosts = None if options.dns_hosts is None else read_hosts(Path(options.dns_hosts))
        return cls([ip_network(network) for network in options.network_allowed], hosts)

    def permit(self, address: str, *, in_url: bool = False) -> bool:
        """Return whether the crawl may connect to an address; ``in_url`` if the address stands in a URL as the host.

        If only the hosts of DNS_HOSTS are known, an address in a URL must be in NETWORK_ALLOWED.
        """
        parsed = ip_address(address)
        if isinstance(parsed, IPv6Address):
            parsed = parsed.ipv4_mapped or parsed  # over which the same server is reached
        if any(parsed in network for network in self.allowed):
            return True
        return is_public(parsed) and not (in_url and self.hosts is not None)


def written_addresses(host: str) -> list[str]:
    """Return the address that a host is, in any notation; none if the host is a name.

    ``2130706433``, ``0x7f.1`` and ``0177.0.0.1`` are forms of 127.0.0.1 (POSIX, inet_addr). The system decides which
    forms are addresses.
    """
    return _ask(host, socket.AI_NUMERICHOST)


def system_addresses(host: str) -> list[str]:
    """Return the addresses of a host, as the system resolves it, the best first; empty if it has none. Blocks.

    Raises NoAnswer if nobody who could know answered (EAI_AGAIN of getaddrinfo(3)).
    """
    return _ask(host, socket.AI_ADDRCONFIG)


def _ask(host: str, flags: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=flags)
    except (OSError, ValueError) as error:  # ValueError: of labels that no name may have (UnicodeError), or of a NUL
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
            raise NoAnswer(f"{host}: {error.strerror}") from None
        return []
    return first_addresses(str(address[0]) for _, _, _, _, address in found)


def first_addresses(addresses: Iterable[str]) -> list[str]:
    """Return the addresses that are tried, each once."""
    return list(dict.fromkeys(addresses))[:_MOST_ADDRESSES]


def read_hosts(path: Path) -> dict[str, list[str]]:
    """Read a file written like /etc/hosts: an address and its hosts a line, ``#`` comments (see hosts(5)).

    A host in several lines has all their addresses. Raises InputError that names the file and, of a broken one, the
    line.
    """
    hosts: dict[str, list[str]] = {}
    try:
        for number, line in enumerate(input_lines(path, compressed=False, longest=_LONGEST_LINE), 1):
            address, *names = line.partition("#")[0].split() or [""]
            if address:
                if fault := _fault(address, names):
                    raise InputError(f"DNS_HOSTS {path}, line {number}: {fault}; write ADDRESS HOST ...")
                for name in names:
                    hosts.setdefault(host_named(name), []).append(address)
    except OSError as error:
        raise InputError(f"DNS_HOSTS {path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"DNS_HOSTS {path} cannot be read: it is not text in UTF-8") from None
    return {name: first_addresses(addresses) for name, addresses in hosts.items()}


def _fault(address: str, names: Sequence[str]) -> str | None:
    """Return the fault of a line of a hosts file, or None."""
    try:
        ip_address(address)
    except ValueError:
        return f"{address!r} is not an address"
    if not names:
        return "it has no host"
    for name in names:
        if set(name) & _DELIMITERS or not _HOST.fullmatch(host_named(name)) or written_addresses(name):
            return f"{name!r} is not the name of a host"
    return None
