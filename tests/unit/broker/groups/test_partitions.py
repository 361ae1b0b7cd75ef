"""Where groups live is Java's arithmetic."""

import pytest

from broker.groups.partitions import java_hash, partition_for


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("a", 97),
        ("console-consumer-1", 35782224),
        ("polygenelubricants", -(2**31)),
        ("ä𝄞", 1991502),
    ],
)
def test_hash_is_javas(text: str, expected: int) -> None:
    assert java_hash(text) == expected


def test_partition_is_never_negative() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert java_hash("orders") < 0
    assert partition_for("orders", 50) == 31
    assert partition_for("console-consumer-1", 50) == 24
