"""Certificates: a host has to be named in the one that it shows.

Since version 26.4 Twisted only notes in the log that a certificate has no subjectAltName, or one that cannot be read,
and lets the connection go on. So the name is checked here, by the same functions.
"""

from __future__ import annotations

from typing import Any

from OpenSSL import SSL
from OpenSSL.crypto import X509
from service_identity import VerificationError
from service_identity.exceptions import CertificateError
from service_identity.hazmat import DNS_ID, IPAddress_ID, ServiceID, verify_service_identity
from service_identity.pyopenssl import extract_patterns
from twisted.internet.abstract import isIPAddress, isIPv6Address
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator
from twisted.python.failure import Failure
from twisted.web.iweb import IPolicyForHTTPS
from zope.interface import implementer

NAMELESS = (VerificationError, CertificateError)
"""Errors of a certificate that is for another host, or names no host."""


@implementer(IPolicyForHTTPS)
class NamedHosts:
    """A policy that verifies certificates as another one does, and lets no host pass that is not named."""

    def __init__(self, policy: Any) -> None:
        self._policy = policy

    def creatorForNetloc(self, hostname: bytes, port: int) -> _Creator:  # noqa: N802 - Twisted's name
        """Return the factory of connections to a host."""
        return _Creator(self._policy.creatorForNetloc(hostname, port), hostname.decode("ascii"))


@implementer(IOpenSSLClientConnectionCreator)
class _Creator:
    """Makes connections whose certificates are for a host."""

    def __init__(self, creator: Any, host: str) -> None:
        self._creator = creator
        is_address = isIPAddress(host) or isIPv6Address(host)
        self._name: ServiceID = IPAddress_ID(host) if is_address else DNS_ID(host)

    def clientConnectionForTLS(self, protocol: Any) -> SSL.Connection:  # noqa: N802 - Twisted's name
        """Return a connection for one of Twisted's protocols."""
        connection: SSL.Connection = self._creator.clientConnectionForTLS(protocol)

        def verify(_: SSL.Connection, certificate: X509, _error: int, depth: int, ok: int) -> bool:
            """Return whether a certificate of the chain will do; ``ok``: whether OpenSSL says so."""
            if depth:
                return bool(ok)
            try:
                verify_service_identity(extract_patterns(certificate), [self._name], [])
            except NAMELESS as error:
                fault: Exception = error
            except Exception as error:  # noqa: BLE001 - OpenSSL would swallow it, and the connection go on
                fault = CertificateError(f"the certificate cannot be read: {error}")
            else:
                return bool(ok)
            protocol.failVerification(Failure(fault))  # type: ignore[no-untyped-call]
            return False

        connection.set_verify(SSL.VERIFY_PEER | SSL.VERIFY_FAIL_IF_NO_PEER_CERT, verify)
        return connection
