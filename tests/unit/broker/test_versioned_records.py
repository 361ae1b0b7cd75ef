"""The version in front of a record's key or value."""

import pytest

from broker.versioned_records import (
    MalformedRecordError,
    UnknownRecordVersionError,
    decode_versioned,
    encode_versioned,
    version_of,
)
from network.protocol.schema import Message, int32


class Sample(Message, versions="1-2"):
    old: int = int32("1", ignorable=True)
    new: int = int32("2", default=9)


def test_a_message_is_read_in_the_version_that_it_names() -> None:
    assert decode_versioned(Sample, b"\0\x01\0\0\0\x05") == Sample(old=5, new=9)
    assert decode_versioned(Sample, b"\0\x02\0\0\0\x05") == Sample(old=0, new=5)


def test_a_message_may_be_read_as_another_version() -> None:
    assert decode_versioned(Sample, b"\0\x07\0\0\0\x05", 2) == Sample(new=5)


def test_a_message_is_written_behind_its_version() -> None:
    assert encode_versioned(Sample(old=5), 1) == b"\0\x01\0\0\0\x05"


@pytest.mark.parametrize("version", [-1, 0, 3])
def test_other_versions_are_unknown(version: int) -> None:
    with pytest.raises(UnknownRecordVersionError, match=f"no version {version}"):
        encode_versioned(Sample(), version)
    with pytest.raises(UnknownRecordVersionError, match=f"no version {version}"):
        decode_versioned(Sample, version.to_bytes(2, signed=True))


@pytest.mark.parametrize("data", [b"", b"\0"])
def test_too_few_bytes_have_no_version(data: bytes) -> None:
    with pytest.raises(MalformedRecordError, match="too few"):
        version_of(data)


def test_missing_bytes_are_refused() -> None:
    with pytest.raises(MalformedRecordError, match="Sample v1"):
        decode_versioned(Sample, b"\0\x01")


def test_bytes_behind_the_fields_are_ignored_as_kafka_ignores_them() -> None:
    assert decode_versioned(Sample, b"\0\x01\0\0\0\x05\0") == Sample(old=5)
