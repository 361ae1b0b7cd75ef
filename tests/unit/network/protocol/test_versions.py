"""Ranges of versions in the notation of the schemas."""

import pytest

from network.protocol.versions import NONE, UNBOUNDED, Versions, parse_versions


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0+", Versions(0, UNBOUNDED)),
        ("7+", Versions(7, UNBOUNDED)),
        ("3", Versions(3, 3)),
        ("2-11", Versions(2, 11)),
        ("none", NONE),
    ],
)
def test_a_range_is_read_and_written(text: str, expected: Versions) -> None:
    assert parse_versions(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize("text", ["", "+", "a", "1-b", "1-2-3"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid literal"):
        parse_versions(text)


def test_a_range_holds_both_its_ends_and_nothing_else() -> None:
    assert [version for version in range(-1, 6) if version in parse_versions("2-4")] == [2, 3, 4]
    assert all(version not in NONE for version in range(-1, 3))
