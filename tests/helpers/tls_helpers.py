"""Servers with certificates: made here, signed by nobody but themselves."""

from __future__ import annotations

import datetime
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

from addon_site import Answer, Handler, Server
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

DAY = datetime.timedelta(days=1)


def make_certificate(folder: Path, *, address: str = "127.0.0.1", expired: bool = False, names: bool = True) -> Path:
    """Make a certificate for an address that has signed itself, in a file with its key; not ``names``: it has the
    address as its common name alone, as certificates once had."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test" if names else address)])
    now = datetime.datetime.now(datetime.timezone.utc)
    building = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - 10 * DAY)
        .not_valid_after(now - DAY if expired else now + DAY)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    )
    if names:
        alternative = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))])
        building = building.add_extension(alternative, critical=False)
    certificate = building.sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{address}{'-expired' * expired}{'-nameless' * (not names)}.pem"
    path.write_bytes(private + certificate.public_bytes(pem))
    return path


@contextmanager
def serve_tls(certificate: Path, answers: Mapping[str, Answer]) -> Iterator[tuple[str, list[str]]]:
    """A site over TLS; its URL, and the paths that it was asked for."""
    asked: list[str] = []

    class Answers(Handler):
        protocol_version = "HTTP/1.0"

        def do_GET(self) -> None:
            asked.append(self.path)
            answer = answers.get(self.path, Answer(b"<p>not here", 404))
            self.send_response(answer.status)
            self.send_header("Content-Type", answer.content_type)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

    class Tolerant(Server):
        def handle_error(self, *args: object) -> None:
            """A handshake that the client broke off."""

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = Tolerant(("127.0.0.1", 0), Answers)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"https://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
