"""Key and trust stores as Kafka's settings name them: JKS, PKCS12 or PEM, read into PEM text.

As Java does, JKS and PKCS12 are told apart by what is in the file, whichever of the two its
setting says: keytool writes PKCS12 by default, and Kafka's default is JKS.
"""

import ssl
from base64 import encodebytes
from dataclasses import dataclass
from pathlib import Path

from network.tls.jks import JCEKS_MAGIC, MAGIC, JksError, read_jks

PEM = "PEM"
JAVA_TYPES = ("JKS", "PKCS12")
DER_SEQUENCE = b"\x30"


class StoreError(ValueError):
    """A store that cannot be used; the text names the file and the reason."""


@dataclass(frozen=True, slots=True)
class Store:
    """Where a store is and how it is opened."""

    location: Path
    kind: str = "JKS"
    password: str | None = None
    key_password: str | None = None

    def modified_at(self) -> int | None:
        try:
            return self.location.stat().st_mtime_ns
        except OSError:
            return None


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key with its certificates in PEM, and the password that the key may still need."""

    pem: str
    key_password: str | None = None


def load_identities(store: Store) -> list[Identity]:
    """Every private key of a store; raises StoreError."""
    data = _read(store)
    try:
        if store.kind.upper() == PEM:
            return [Identity(data.decode(), store.key_password)]
        if data[:4] == MAGIC:
            return _identities_of_jks(data, store)
        return _identity_of_pkcs12(data, store)
    except ValueError as error:
        raise StoreError(f"{store.location}: {error}") from None


def certificate_names(store: Store) -> list[tuple[str, frozenset[str]]]:
    """Subject and alternative names of each identity's own certificate; raises StoreError."""
    from cryptography import x509

    names: list[tuple[str, frozenset[str]]] = []
    for identity in load_identities(store):
        certificate = x509.load_pem_x509_certificates(identity.pem.encode())[0]
        try:
            extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
            alternatives = frozenset(str(one.value) for one in extension.value)
        except x509.ExtensionNotFound:
            alternatives = frozenset()
        names.append((certificate.subject.rfc4514_string(), alternatives))
    return sorted(names, key=lambda one: one[0])


def load_authorities(store: Store) -> str:
    """Every certificate of a trust store, in PEM; raises StoreError."""
    data = _read(store)
    try:
        if store.kind.upper() == PEM:
            return data.decode()
        if data[:4] == MAGIC:
            certificates = list(read_jks(data, store.password).trusted)
        else:
            certificates = _authorities_of_pkcs12(data, store)
    except ValueError as error:
        raise StoreError(f"{store.location}: {error}") from None
    if not certificates:
        raise StoreError(f"{store.location}: there is no trusted certificate in it")
    return "".join(map(ssl.DER_cert_to_PEM_cert, certificates))


def _read(store: Store) -> bytes:
    kind = store.kind.upper()
    if kind != PEM and kind not in JAVA_TYPES:
        raise StoreError(
            f"{store.location}: stores of type {store.kind} cannot be read;"
            f" use PEM, {' or '.join(JAVA_TYPES)}"
        )
    try:
        data = store.location.read_bytes()
    except OSError as error:
        raise StoreError(f"{store.location}: {error.strerror}") from error
    if kind != PEM and data[:4] == JCEKS_MAGIC:
        raise StoreError(f"{store.location}: JCEKS stores cannot be read; convert it to PKCS12")
    if kind != PEM and data[:4] != MAGIC and data[:1] != DER_SEQUENCE:
        raise StoreError(f"{store.location}: neither a JKS nor a PKCS12 store")
    return data


def _identities_of_jks(data: bytes, store: Store) -> list[Identity]:
    entries = read_jks(data, store.password).keys
    if not entries:
        raise JksError("there is no private key in it")
    password = store.key_password or store.password
    if password is None:
        raise JksError("the private key needs a password")
    return [
        Identity(
            _key_to_pem(entry.key(password)) + "".join(map(ssl.DER_cert_to_PEM_cert, entry.chain))
        )
        for entry in entries
    ]


def _key_to_pem(der: bytes) -> str:
    body = encodebytes(der).decode().replace("\n", "")
    lines = [body[start : start + 64] for start in range(0, len(body), 64)]
    return "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", ""])


def _identity_of_pkcs12(data: bytes, store: Store) -> list[Identity]:
    # Imported where it is needed: it would cost every start time and memory.
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        NoEncryption,
        PrivateFormat,
        pkcs12,
    )

    loaded = pkcs12.load_pkcs12(data, _password(store))
    if loaded.key is None or loaded.cert is None:
        raise ValueError("there is no private key in it")
    key = loaded.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = [loaded.cert, *loaded.additional_certs]
    certificates = [one.certificate.public_bytes(Encoding.PEM) for one in chain]
    return [Identity(b"".join([key, *certificates]).decode())]


def _authorities_of_pkcs12(data: bytes, store: Store) -> list[bytes]:
    from cryptography.hazmat.primitives.serialization import Encoding, pkcs12

    loaded = pkcs12.load_pkcs12(data, _password(store))
    return [one.certificate.public_bytes(Encoding.DER) for one in loaded.additional_certs]


def _password(store: Store) -> bytes | None:
    return None if store.password is None else store.password.encode()
