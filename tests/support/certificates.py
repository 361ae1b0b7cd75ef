"""Certificates for tests: an authority, and whom it vouches for, in PEM and in Java's stores."""

import datetime
import ipaddress
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

PASSWORD = "store password"
LIFE = datetime.timedelta(days=2)
HAS_KEYTOOL = shutil.which("keytool") is not None


@dataclass(frozen=True)
class Holder:
    """Somebody with a key and a certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    issuer: x509.Certificate

    def pem(self, password: str | None = None) -> bytes:
        """Key and chain in one file, as Kafka wants a PEM key store."""
        return self.key_pem(password) + self.certificate_pem()

    def key_pem(self, password: str | None = None) -> bytes:
        encryption: KeySerializationEncryption = NoEncryption()
        if password is not None:
            encryption = BestAvailableEncryption(password.encode())
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)

    def certificate_pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


class Authority:
    """Signs certificates that are good for today."""

    def __init__(self, name: str = "authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(
            self._name,
            self._key.public_key(),
            x509.BasicConstraints(ca=True, path_length=None),
        )

    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str) -> Holder:
        """For a broker or a client on this machine."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        names = x509.SubjectAlternativeName(
            [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        )
        certificate = self._sign(subject, key.public_key(), names)
        return Holder(key, certificate, self.certificate)

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        extension: x509.ExtensionType,
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - LIFE)
            .not_valid_after(now + LIFE)
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        )
        return builder.sign(self._key, hashes.SHA256())


@dataclass(frozen=True)
class TlsFiles:
    """What a broker and a client with certificates of one authority need, as PEM files."""

    authority: Path
    server: Path
    client_certificate: Path
    client_key: Path

    @property
    def broker_settings(self) -> dict[str, str]:
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.server),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "ssl.client.auth": "required",
        }


def make_tls_files(directory: Path) -> TlsFiles:
    authority = Authority()
    server, client = authority.issue("broker"), authority.issue("client")
    files = TlsFiles(
        directory / "authority.pem",
        directory / "server.pem",
        directory / "client.pem",
        directory / "client.key",
    )
    files.authority.write_bytes(authority.pem())
    files.server.write_bytes(server.pem())
    files.client_certificate.write_bytes(client.certificate_pem())
    files.client_key.write_bytes(client.key_pem())
    return files


def keytool(*arguments: str) -> None:
    """The JDK's own tool."""
    command = ["keytool", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
