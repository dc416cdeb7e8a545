"""The certificate authority of the web, and one certificate for all its names."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_DAYS = datetime.timedelta(days=3650)


def certificates(folder: Path, names: Sequence[str]) -> None:
    """Write ``ca.pem``, ``web.pem`` and ``web.key``, unless they are there for these names."""
    wanted = "\n".join(names)
    listed = folder / "names"
    if listed.exists() and listed.read_text() == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "Authority of the test web")])
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test web")])

    def begun(name: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        serial = x509.random_serial_number()
        builder = x509.CertificateBuilder(issuer, name, public, serial)
        return builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + _DAYS)

    root = begun(issuer, authority.public_key()).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    leaf = begun(subject, key.public_key()).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(root.sign(authority, hashes.SHA256()).public_bytes(pem))
    signed = leaf.sign(authority, hashes.SHA256()).public_bytes(pem)
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "web.pem").write_bytes(private + signed)  # lighttpd reads both from one file
    (folder / "web.key").write_bytes(private)
    listed.write_text(wanted)
