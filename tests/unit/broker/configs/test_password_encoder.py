"""Passwords as they lie in ZooKeeper. What Kafka itself wrote is read in tests/fidelity."""

import pytest

from broker.configs.password_encoder import PasswordEncoder, UndecodablePasswordError
from broker.settings import SettingsError

pytest.importorskip("cryptography")

CBC, GCM = "AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"


def encoder(secret: str = "secret", cipher: str = CBC, bits: int = 128) -> PasswordEncoder:
    return PasswordEncoder(secret, None, cipher, bits, 1024)


@pytest.mark.parametrize("cipher", [CBC, GCM])
@pytest.mark.parametrize("bits", [128, 256])
@pytest.mark.parametrize("password", ["", "hush", "hüsh 🤫", "x" * 100, "a:b,c=d"])
def test_a_password_comes_back(cipher: str, bits: int, password: str) -> None:
    one = encoder(cipher=cipher, bits=bits)
    encoded = one.encode(password)
    assert password not in encoded or not password
    assert encoded != one.encode(password)  # salt and vector are new each time
    # What goes with the password tells how to read it, whatever the settings are by now.
    assert encoder(cipher=GCM if cipher == CBC else CBC).decode(encoded) == password


@pytest.mark.parametrize("cipher", [CBC, GCM])
def test_another_secret_does_not_open_it(cipher: str) -> None:
    encoded = encoder(cipher=cipher).encode("hush, this is more than one block long")
    with pytest.raises(UndecodablePasswordError):
        encoder("another", cipher).decode(encoded)


@pytest.mark.parametrize("change", ["cut", "no salt", "other length", "no password at all"])
def test_a_damaged_password_is_told_as_such(change: str) -> None:
    encoded = encoder().encode("hush")
    damaged = {
        "cut": encoded[:-30],
        "no salt": encoded.replace("salt:", "sugar:"),
        "other length": encoded.replace("passwordLength:4", "passwordLength:5"),
        "no password at all": "hush",
    }[change]
    with pytest.raises(UndecodablePasswordError):
        encoder().decode(damaged)


@pytest.mark.parametrize(
    ("key_factory", "cipher", "bits", "name"),
    [
        ("MD5", CBC, 128, "password.encoder.keyfactory.algorithm"),
        (None, "DES/CBC/PKCS5Padding", 128, "password.encoder.cipher.algorithm"),
        (None, CBC, 100, "password.encoder.key.length"),
    ],
)
def test_what_is_not_known_here_is_refused_at_once(
    key_factory: str | None, cipher: str, bits: int, name: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        PasswordEncoder("secret", key_factory, cipher, bits, 4096)
    assert caught.value.name == name
