from argparse import ArgumentTypeError

import pytest

from broker.analyze import size_in_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [("500", 500), ("500GB", 500 * 10**9), ("1.5t", 15 * 10**11), ("2k", 2000), ("7B", 7)],
)
def test_a_size_is_in_bytes_or_thousands_of_them(text: str, size: int) -> None:
    assert size_in_bytes(text) == size


@pytest.mark.parametrize("text", ["", "much", "-1", "nan", "G", "1e40"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match=f"^'{text}' is not a size such as 500GB"):
        size_in_bytes(text)
