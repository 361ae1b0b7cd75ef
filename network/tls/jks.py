"""Java's own key store, the format JKS, as keytool wrote it for twenty years.

    magic u4 = FEEDFEED | version u4 = 1, 2 | number of entries u4 | entries | SHA-1 (20)

    entry, private key:         1 u4 | alias | created u8 | key | chain length u4 | certificates
    entry, trusted certificate: 2 u4 | alias | created u8 | certificate
    alias: length u2, then modified UTF-8      key: length u4, then EncryptedPrivateKeyInfo in DER
    certificate: (version 2) its type like an alias | length u4, then DER

All numbers are big-endian. The digest at the end covers the password, a phrase and all before it.
A private key is hidden by Sun's own algorithm: a stream of SHA-1 digests of the password, each
with the one before, from a salt of 20 bytes; a digest of password and key tells whether it fits.
"""

import hashlib
import hmac
from dataclasses import dataclass
from struct import Struct

MAGIC = b"\xfe\xed\xfe\xed"
JCEKS_MAGIC = b"\xce\xce\xce\xce"
PRIVATE_KEY = 1
TRUSTED_CERTIFICATE = 2
DIGEST_BYTES = 20
WHITENER = b"Mighty Aphrodite"
SUN_KEY_PROTECTOR = bytes.fromhex("2b060104012a02110101")  # 1.3.6.1.4.1.42.2.17.1.1

_U2 = Struct(">H")
_U4 = Struct(">I")
_U8 = Struct(">Q")


class JksError(ValueError):
    """The bytes are no such store, or the password is not its password."""


@dataclass(frozen=True, slots=True)
class PrivateKeyEntry:
    alias: str
    protected_key: bytes
    chain: tuple[bytes, ...]

    def key(self, password: str) -> bytes:
        """The key as PKCS #8 in DER; raises JksError."""
        return _recover_key(self.protected_key, password)


@dataclass(frozen=True, slots=True)
class JksStore:
    """What is in a store; certificates are in DER."""

    keys: tuple[PrivateKeyEntry, ...]
    trusted: tuple[bytes, ...]


def read_jks(data: bytes, password: str | None) -> JksStore:
    """Without a password the store's integrity is not checked, as in Java."""
    if data[:4] != MAGIC:
        raise JksError("not a JKS key store")
    if password is not None:
        digest = hashlib.sha1(_password_bytes(password) + WHITENER + data[:-DIGEST_BYTES]).digest()
        if not hmac.compare_digest(digest, data[-DIGEST_BYTES:]):
            raise JksError("the password is wrong, or the file is damaged")
    try:
        return _read_entries(_Reader(data[:-DIGEST_BYTES]))
    except (IndexError, UnicodeDecodeError) as error:
        raise JksError(f"the key store is damaged: {error}") from None


def _read_entries(reader: "_Reader") -> JksStore:
    reader.take(4)
    version = reader.u4()
    if version not in (1, 2):
        raise JksError(f"a JKS key store of version {version} is unknown")
    keys: list[PrivateKeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(reader.u4()):
        kind = reader.u4()
        alias = reader.text()
        reader.take(_U8.size)
        if kind == PRIVATE_KEY:
            protected = reader.take(reader.u4())
            chain = tuple(reader.certificate(version) for _ in range(reader.u4()))
            keys.append(PrivateKeyEntry(alias, protected, chain))
        elif kind == TRUSTED_CERTIFICATE:
            trusted.append(reader.certificate(version))
        else:
            raise JksError(f"an entry of kind {kind} is unknown")
    return JksStore(tuple(keys), tuple(trusted))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def take(self, count: int) -> bytes:
        end = self._position + count
        if end > len(self._data):
            raise IndexError("it ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken

    def u4(self) -> int:
        value: int = _U4.unpack(self.take(_U4.size))[0]
        return value

    def text(self) -> str:
        (length,) = _U2.unpack(self.take(_U2.size))
        return self.take(length).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()
        return self.take(self.u4())


def _recover_key(protected: bytes, password: str) -> bytes:
    hidden = _hidden_key(protected)
    salt, body, check = (
        hidden[:DIGEST_BYTES],
        hidden[DIGEST_BYTES:-DIGEST_BYTES],
        hidden[-DIGEST_BYTES:],
    )
    secret = _password_bytes(password)
    stream, digest = bytearray(), salt
    while len(stream) < len(body):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    key = bytes(left ^ right for left, right in zip(body, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), check):
        raise JksError("the password of the private key is wrong")
    return key


def _hidden_key(protected: bytes) -> bytes:
    """SEQUENCE { SEQUENCE { algorithm, NULL }, OCTET STRING }"""
    try:
        outer = _der_body(protected, 0x30)[0]
        algorithm, rest = _der_body(outer, 0x30)
        if _der_body(algorithm, 0x06)[0] != SUN_KEY_PROTECTOR:
            raise JksError("the private key is hidden by an unknown algorithm")
        return _der_body(rest, 0x04)[0]
    except IndexError:
        raise JksError("the private key is damaged") from None


def _der_body(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The value of the first element, and what follows it."""
    if data[0] != tag:
        raise JksError("the private key is damaged")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    return data[start : start + length], data[start + length :]


def _password_bytes(password: str) -> bytes:
    return password.encode("utf-16-be")
