"""Text in dumps is what Java and Kafka's JSON writer make of it."""

import pytest

from broker.dump_log.java_text import decode_text, hexadecimal, quote_json


# What Java 17 makes of these bytes, a question mark standing for U+FFFD.
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("41c3a4e282acf09f9880", "Aä€\U0001f600"),
        ("80", "?"),
        ("c0af", "??"),
        ("e28241", "?A"),
        ("f0908041", "?A"),
        ("f4908080", "????"),
        ("eda080", "?"),
        ("eda041", "?A"),
        ("eda0", "?"),
        ("ed41", "?A"),
        ("ed", "?"),
        ("eda080edb080", "??"),
        ("ff41fe", "?A?"),
    ],
)
def test_bytes_that_are_no_utf_8_are_replaced_as_java_does(data: str, expected: str) -> None:
    assert decode_text(bytes.fromhex(data)) == expected.replace("?", "\ufffd")


def test_json_escapes_what_it_must_and_nothing_else() -> None:
    text = 'a"b\\c/d\n\t\r\b\f\x00\x1f\x7fä\U0001f600'
    expected = 'a\\"b\\\\c/d\\n\\t\\r\\b\\f\\u0000\\u001F\x7fä\U0001f600'
    assert quote_json(text) == f'"{expected}"'


@pytest.mark.parametrize(
    ("data", "expected"), [(b"", ""), (b"\0", "0"), (b"\0\xab", "AB"), (b"\x01\x00", "100")]
)
def test_bytes_are_one_hexadecimal_number(data: bytes, expected: str) -> None:
    assert hexadecimal(data) == expected
