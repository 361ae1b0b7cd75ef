"""Passwords as Kafka keeps them in ZooKeeper: encrypted under password.encoder.secret.

A key is derived from the secret (PBKDF2) for each password, and what is needed to read it back
goes along with the encrypted text: `name:value,name:value`. Either broker reads the other's.
"""

import base64
import binascii
import hashlib
import os
from typing import Final

from broker.settings import Settings, SettingsError
from broker.settings.definition import InvalidValueError
from broker.settings.listeners import parse_pairs

_SALT_BYTES: Final = 256
_IV_BYTES: Final = {"CBC": 16, "GCM": 12}
_TAG_BITS: Final = 128
_DEFAULT_KEY_FACTORY: Final = "PBKDF2WithHmacSHA512"
_BLOCK_BITS: Final = 128

_DIGESTS: Final = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA224": "sha224",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA384": "sha384",
    "PBKDF2WithHmacSHA512": "sha512",
}


class UndecodablePasswordError(ValueError):
    """A stored password cannot be read: another secret, or no encoded password at all."""


class PasswordEncoder:
    """Encrypts by its own parameters, decrypts by those that go with the password."""

    def __init__(
        self, secret: str, key_factory: str | None, cipher: str, key_length: int, iterations: int
    ) -> None:
        """Raises SettingsError for an algorithm that is not known here."""
        self._secret = secret
        self._key_factory = key_factory or _DEFAULT_KEY_FACTORY
        self._cipher = cipher
        self._key_length = key_length
        self._iterations = iterations
        if self._key_factory not in _DIGESTS:
            raise SettingsError(
                "password.encoder.keyfactory.algorithm",
                self._key_factory,
                f"must be one of {', '.join(_DIGESTS)}",
            )
        _mode_of(cipher)
        if key_length not in (128, 192, 256):
            raise SettingsError(
                "password.encoder.key.length", str(key_length), "AES has keys of 128, 192 and 256"
            )

    @classmethod
    def of(cls, settings: Settings, *, old: bool = False) -> "PasswordEncoder | None":
        """The encoder that the settings ask for, with the current or the old secret."""
        secret = settings.password_encoder_old_secret if old else settings.password_encoder_secret
        if secret is None:
            return None
        return cls(
            secret.secret,
            settings.password_encoder_keyfactory_algorithm,
            settings.password_encoder_cipher_algorithm,
            settings.password_encoder_key_length,
            settings.password_encoder_iterations,
        )

    def encode(self, password: str) -> str:
        salt = os.urandom(_SALT_BYTES)
        mode = _mode_of(self._cipher)
        vector = os.urandom(_IV_BYTES[mode])
        key = self._key(self._key_factory, salt, self._iterations, self._key_length)
        encrypted = _encrypt(mode, key, vector, password.encode())
        fields = {
            "keyFactoryAlgorithm": self._key_factory,
            "cipherAlgorithm": self._cipher,
            "keyLength": self._key_length,
            "salt": _to_base64(salt),
            "iterations": self._iterations,
            "encryptedPassword": _to_base64(encrypted),
            "passwordLength": _java_length(password),
            "initializationVector": _to_base64(vector),
        }
        if mode == "GCM":
            fields["authenticationTagLength"] = _TAG_BITS
        return ",".join(f"{name}:{value}" for name, value in fields.items())

    def decode(self, encoded: str) -> str:
        """Raises UndecodablePasswordError."""
        try:
            fields = parse_pairs(encoded)
            key = self._key(
                fields["keyFactoryAlgorithm"],
                base64.b64decode(fields["salt"], validate=True),
                int(fields["iterations"]),
                int(fields["keyLength"]),
            )
            vector = base64.b64decode(fields["initializationVector"], validate=True)
            encrypted = base64.b64decode(fields["encryptedPassword"], validate=True)
            mode = _mode_of(fields["cipherAlgorithm"])
            password = _decrypt(mode, key, vector, encrypted).decode()
            length = int(fields["passwordLength"])
        except (KeyError, ValueError, binascii.Error, InvalidValueError, SettingsError) as error:
            raise UndecodablePasswordError("the password cannot be decoded") from error
        if _java_length(password) != length:
            raise UndecodablePasswordError("the decoded password has another length")
        return password

    def _key(self, key_factory: str, salt: bytes, iterations: int, bits: int) -> bytes:
        digest = _DIGESTS[key_factory]
        return hashlib.pbkdf2_hmac(digest, self._secret.encode(), salt, iterations, bits // 8)


def _mode_of(cipher: str) -> str:
    """CBC of AES/CBC/PKCS5Padding; Java's name without a mode would mean ECB, which has no IV."""
    algorithm, _, rest = cipher.partition("/")
    mode, _, padding = rest.partition("/")
    wanted_padding = "NoPadding" if mode == "GCM" else "PKCS5Padding"
    if algorithm != "AES" or mode not in _IV_BYTES or padding != wanted_padding:
        raise SettingsError(
            "password.encoder.cipher.algorithm",
            cipher,
            "must be AES/CBC/PKCS5Padding or AES/GCM/NoPadding",
        )
    return mode


def _encrypt(mode: str, key: bytes, vector: bytes, data: bytes) -> bytes:
    # Imported here: few brokers keep passwords in ZooKeeper, and it takes memory.
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if mode == "GCM":
        sealed: bytes = AESGCM(key).encrypt(vector, data, None)
        return sealed
    padder = PKCS7(_BLOCK_BITS).padder()
    encryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).encryptor()
    padded: bytes = padder.update(data) + padder.finalize()
    encrypted: bytes = encryptor.update(padded) + encryptor.finalize()
    return encrypted


def _decrypt(mode: str, key: bytes, vector: bytes, data: bytes) -> bytes:
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.padding import PKCS7

    if mode == "GCM":
        try:
            opened: bytes = AESGCM(key).decrypt(vector, data, None)
        except InvalidTag as error:
            raise ValueError("wrong secret") from error
        return opened
    decryptor = Cipher(algorithms.AES(key), modes.CBC(vector)).decryptor()
    unpadder = PKCS7(_BLOCK_BITS).unpadder()
    padded: bytes = decryptor.update(data) + decryptor.finalize()
    decrypted: bytes = unpadder.update(padded) + unpadder.finalize()
    return decrypted


def _to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _java_length(text: str) -> int:
    """In UTF-16 units, as Java counts."""
    return len(text.encode("utf-16-le")) // 2
