"""Key and trust stores that the JDK's keytool wrote: committed ones, and fresh ones where it is."""

import ssl
import subprocess
from pathlib import Path

import pytest

from network.tls.cipher_suites import openssl_name
from network.tls.context import TlsContext, TlsError, TlsSettings
from network.tls.jks import JksError, read_jks
from network.tls.stores import (
    Store,
    StoreError,
    certificate_names,
    load_authorities,
    load_identities,
)
from network.tls.verification import verify_own_certificate
from tests.support.certificates import HAS_KEYTOOL, keytool

FIXTURES = Path(__file__).parents[3] / "fixtures" / "key-stores"
STORE_PASSWORD, KEY_PASSWORD = "store-password", "key-password"

needs_keytool = pytest.mark.skipif(not HAS_KEYTOOL, reason="the JDK's keytool is not installed")


def key_store(name: str, kind: str, key_password: str | None = None) -> Store:
    return Store(FIXTURES / name, kind, STORE_PASSWORD, key_password)


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])  # Java reads either under both names
@pytest.mark.parametrize(
    ("name", "key_password"), [("broker.jks", KEY_PASSWORD), ("broker.p12", None)]
)
def test_a_key_store_of_java_gives_key_and_certificate(
    name: str, key_password: str | None, kind: str
) -> None:
    store = key_store(name, kind, key_password)
    (identity,) = load_identities(store)
    assert "BEGIN PRIVATE KEY" in identity.pem
    assert identity.pem.count("BEGIN CERTIFICATE") == 1
    exported = (FIXTURES / f"broker-{name[-3:]}.pem").read_text()
    assert ssl.PEM_cert_to_DER_cert(exported) == ssl.PEM_cert_to_DER_cert(
        identity.pem[identity.pem.index("-----BEGIN CERTIFICATE") :]
    )
    ((subject, alternatives),) = certificate_names(store)
    assert "CN=broker" in subject
    assert alternatives == {"localhost", "127.0.0.1"}


@pytest.mark.parametrize(
    ("keys", "trusted", "key_password"),
    [("broker.jks", "trust.jks", KEY_PASSWORD), ("broker.p12", "trust.p12", None)],
)
def test_stores_of_java_serve_a_handshake(
    keys: str, trusted: str, key_password: str | None
) -> None:
    settings = TlsSettings(
        key_store=key_store(keys, "JKS", key_password),
        trust_store=Store(FIXTURES / trusted, "JKS", STORE_PASSWORD),
    )
    verify_own_certificate(settings)


def test_a_trust_store_needs_no_password_in_the_format_jks() -> None:
    with_password = load_authorities(Store(FIXTURES / "trust.jks", "JKS", STORE_PASSWORD))
    assert load_authorities(Store(FIXTURES / "trust.jks", "JKS")) == with_password


def test_every_key_of_a_store_is_served() -> None:
    store = key_store("two-keys.jks", "JKS")
    assert len(load_identities(store)) == 2
    TlsContext(TlsSettings(key_store=store))


@pytest.mark.parametrize("name", ["broker.jks", "broker.p12"])
def test_a_wrong_password_is_told(name: str) -> None:
    with pytest.raises(StoreError, match=name):
        load_identities(Store(FIXTURES / name, "JKS", "wrong", KEY_PASSWORD))


def test_a_wrong_password_of_the_key_is_told() -> None:
    with pytest.raises(TlsError, match="password of the private key"):
        TlsContext(TlsSettings(key_store=key_store("broker.jks", "JKS", "wrong")))


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12"])
def test_a_store_without_key_is_told(name: str) -> None:
    with pytest.raises(StoreError, match="no private key"):
        load_identities(key_store(name, "JKS"))


@pytest.mark.parametrize("name", ["broker.jks", "broker.p12"])
def test_a_store_without_trusted_certificate_is_told(name: str) -> None:
    with pytest.raises(StoreError, match="no trusted certificate"):
        load_authorities(key_store(name, "JKS"))


def test_every_cut_of_a_key_store_is_told() -> None:
    data = (FIXTURES / "broker.jks").read_bytes()
    for end in range(4, len(data), 7):
        with pytest.raises(JksError):
            read_jks(data[:end], STORE_PASSWORD)
        try:
            read_jks(data[:end], None)
        except JksError:
            continue


def test_foreign_files_are_told(tmp_path: Path) -> None:
    file = tmp_path / "store"
    for content, kind, told in (
        (b"anything", "JKS", "neither a JKS nor a PKCS12"),
        (b"\xce\xce\xce\xce rest", "JKS", "convert it"),
        (b"\x30\x03abc", "PKCS12", "store"),
    ):
        file.write_bytes(content)
        with pytest.raises(StoreError, match=told):
            load_identities(Store(file, kind, STORE_PASSWORD))


@needs_keytool
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
@pytest.mark.parametrize("algorithm", [("RSA", "2048"), ("EC", "256")])
def test_a_fresh_store_of_this_machines_keytool_is_read(
    tmp_path: Path, kind: str, algorithm: tuple[str, str]
) -> None:
    password = "pässwörd 1" if kind == "JKS" else "password 1"
    file = str(tmp_path / "store")
    store = ("-keystore", file, "-storetype", kind, "-storepass", password)
    name, size = algorithm
    generate = ("-genkeypair", "-alias", "one", "-keyalg", name, "-keysize", size)
    keytool(*generate, "-dname", "CN=fresh", "-keypass", password, *store)
    TlsContext(TlsSettings(key_store=Store(Path(file), kind, password)))


def test_names_of_cipher_suites_are_translated_as_openssl_does() -> None:
    listed = subprocess.run(
        ["openssl", "ciphers", "-stdname", "ALL:@SECLEVEL=0"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    checked = 0
    for line in listed.splitlines():
        standard, _dash, own, *_ = line.split()
        is_common = any(kind in standard for kind in ("_AES_", "CHACHA20"))
        is_odd = any(kind in standard for kind in ("_anon_", "PSK", "SRP"))  # no certificates
        if "_WITH_" in standard and is_common and not is_odd:
            assert openssl_name(standard) == own
            checked += 1
    assert checked > 30
