"""A ledger on a server that is reached through TLS.

The server that comes from PyPI is built without TLS, so a door stands before it: it answers libpq's request as a server does,
with a certificate of its own making, and passes what it decrypts to the server's socket.
"""

from __future__ import annotations

import datetime
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.servers import Server
from sabun.errors import LedgerError
from sabun.ledger import Ledger
from sabun.privacy import Guarantee

pytest.importorskip("psycopg")
x509 = pytest.importorskip("cryptography.x509")

_TLS, _GSS = 80877103, 80877104


def certificate(folder: Path, host: str) -> tuple[Path, Path]:
    """A self-signed certificate for a host, and its key."""
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day).not_valid_after(now + day)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = builder.sign(key, hashes.SHA256())
    files = folder / f"{host}.crt", folder / f"{host}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(*plain))
    return files


class Door:
    """Speaks TLS to clients and plainly to the server behind it; counts who came in with TLS."""

    def __init__(self, inner: str, files: tuple[Path, Path]) -> None:
        self._inner, self.passed = inner, 0
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(*files)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._let_in, args=(client,), daemon=True).start()

    def _let_in(self, client: socket.socket) -> None:
        try:
            while (asked := struct.unpack("!II", client.recv(8, socket.MSG_WAITALL))) == (8, _GSS):
                client.sendall(b"N")
            if asked != (8, _TLS):
                client.close()  # as hostssl in pg_hba.conf: nobody comes in without TLS
                return
            client.sendall(b"S")
            with self._context.wrap_socket(client, server_side=True) as outside, socket.socket(socket.AF_UNIX) as inside:
                inside.connect(self._inner)
                self.passed += 1
                back = threading.Thread(target=_pass, args=(inside, outside), daemon=True)
                back.start()
                _pass(outside, inside)
                back.join(5)
        except (OSError, struct.error):
            client.close()

    def close(self) -> None:
        self._listening.close()


def _pass(source: socket.socket, target: socket.socket) -> None:
    try:
        while some := source.recv(65536):
            target.sendall(some)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


@pytest.fixture(scope="module")
def doors(running: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Door, Path]]]:
    """Doors with certificates for hosts, each with the certificate that a client must trust."""
    folder, made = tmp_path_factory.mktemp("tls"), dict[str, tuple[Door, Path]]()

    def door(host: str) -> tuple[Door, Path]:
        if host not in made:
            files = certificate(folder, host)
            made[host] = Door(f"{running.folder}/.s.PGSQL.5432", files), files[0]
        return made[host]

    yield door
    for one, _ in made.values():
        one.close()


def address(running: Server, door: Door, options: str) -> str:
    name = running.place().rpartition("=")[2]
    return f"postgresql://postgres@localhost:{door.port}/postgres?hostaddr=127.0.0.1&{options}&ledger={name}"


def test_a_ledger_is_made_charged_and_verified_through_tls(running, doors):
    door, trusted = doors("localhost")
    place = address(running, door, f"sslmode=verify-full&sslrootcert={trusted}")
    ledger = Ledger.create(place, name="clinic", unit="patient", epsilon=1)
    ledger.charge(Guarantee(epsilon="1/2", unit="patient"), purpose="p")
    assert Ledger.open(place).verify().entries == 1
    assert door.passed >= 2


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca"])
def test_a_certificate_that_nobody_vouches_for_is_refused(running, doors, mode):
    (door, _), (_, other) = doors("localhost"), doors("elsewhere.example")
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger.create(address(running, door, f"sslmode={mode}&sslrootcert={other}"), name="x", epsilon=1)


def test_a_certificate_for_another_host_is_refused_by_verify_full_alone(running, doors):
    door, trusted = doors("elsewhere.example")
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger.create(address(running, door, f"sslmode=verify-full&sslrootcert={trusted}"), name="x", epsilon=1)
    Ledger.create(address(running, door, f"sslmode=verify-ca&sslrootcert={trusted}"), name="x", epsilon=1)


def test_a_server_that_wants_tls_is_not_spoken_to_without(running, doors):
    door, _ = doors("localhost")
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger.create(address(running, door, "sslmode=disable"), name="x", epsilon=1)
