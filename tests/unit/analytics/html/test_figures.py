from datetime import date, datetime

import pytest

from analytics.html import figures


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 KB"),
        (12_345, "12.3 KB"),
        (123_456, "123 KB"),
        (-5_000_000, "-5.00 MB"),
        (7.5e18, "7.50 EB"),
        (7.5e21, "7500 EB"),
    ],
)
def test_sizes_have_three_digits_and_a_unit(number: float, text: str) -> None:
    assert figures.size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.25, "250 ms"), (1, "1 s"), (90, "1.5 min"), (7200, "2 h"), (86_400 * 3, "3 d")],
)
def test_spans_are_in_their_largest_fitting_unit(seconds: float, text: str) -> None:
    assert figures.span(seconds) == text


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("records", 1_234_567, "1,234,567"),
        ("bytes", 1_500, "1.50 KB"),
        ("first_offset", 1_234_567, "1234567"),
        ("producer_id", 4_000, "4000"),
        ("null_key_share", 0.125, "12.5%"),
        ("late_seconds_max", 120.0, "2 min"),
        ("records_skew", 1.5, "1.50"),
        ("bytes_skew", 2.597, "2.60"),
        ("mean_records", 12_345.6, "12,346"),
        ("is_transactional", True, "yes"),
        ("full_on", date(2030, 1, 2), "2030-01-02"),
        ("at", datetime(2030, 1, 2, 3, 4, 5), "2030-01-02 03:04:05"),
        ("topic", "castle", "castle"),
        ("topic", None, "-"),
    ],
)
def test_cells_are_shown_by_what_their_column_holds(column: str, value: object, text: str) -> None:
    assert figures.shown(column, value) == text
