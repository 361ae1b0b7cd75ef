"""CRC-32C by the compiled package and by the fallback, and CRC-32, against published values."""

import builtins
import importlib
from collections.abc import Iterator
from types import BuiltinFunctionType, ModuleType

import pytest

import storage.checksums as checksums

CHECK_INPUT = b"123456789"
CRC32C_CHECK = 0xE3069283
CRC32_CHECK = 0xCBF43926


@pytest.fixture
def without_crc32c_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    real_import = builtins.__import__

    def import_all_but_crc32c(name: str, *rest: object) -> object:
        if name == "crc32c":
            raise ImportError("no wheel for this machine")
        return real_import(name, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", import_all_but_crc32c)
        yield importlib.reload(checksums)
    importlib.reload(checksums)


def test_crc32c_of_the_check_input_is_the_published_value() -> None:
    assert checksums.crc32c(CHECK_INPUT) == CRC32C_CHECK


def test_crc32_of_the_check_input_is_the_published_value() -> None:
    assert checksums.crc32(CHECK_INPUT) == CRC32_CHECK


def test_fallback_takes_over_when_the_crc32c_package_is_missing(
    without_crc32c_package: ModuleType,
) -> None:
    assert not isinstance(without_crc32c_package.crc32c, BuiltinFunctionType)
    assert without_crc32c_package.crc32c(CHECK_INPUT) == CRC32C_CHECK


def test_package_and_fallback_agree_on_slices_of_any_buffer() -> None:
    fallback = checksums.crcmod_crc32c()
    data = bytes(range(256)) * 7
    for buffer in (data, bytearray(data), memoryview(data), memoryview(bytearray(data))):
        for start in (0, 1, 21, len(data)):
            assert checksums.crc32c(buffer[start:]) == fallback(data[start:])


def test_a_memoryview_is_read_in_place() -> None:
    data = bytearray(b"....123456789")
    window = memoryview(data)[4:]
    assert checksums.crc32c(window) == CRC32C_CHECK
    data[4] ^= 1
    assert checksums.crc32c(window) != CRC32C_CHECK
