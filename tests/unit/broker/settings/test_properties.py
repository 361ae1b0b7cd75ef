import pytest

from broker.settings.properties import (
    PropertiesSyntaxError,
    decode_properties,
    parse_properties,
)


def parse(text: str) -> dict[str, str]:
    return {entry.name: entry.value for entry in parse_properties(text)}


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("a=b", "a", "b"),
        ("a:b", "a", "b"),
        ("a b", "a", "b"),
        ("a\tb", "a", "b"),
        ("  a  =  b c  ", "a", "b c  "),
        ("a = = b", "a", "= b"),
        ("a==b", "a", "=b"),
        ("a : = b", "a", "= b"),
        ("a", "a", ""),
        ("a=", "a", ""),
        ("=b", "", "b"),
        (r"a\=b=c", "a=b", "c"),
        (r"a\ b\:c d", "a b:c", "d"),
        (r"path=C\:\\logs", "path", r"C:\logs"),
        (r"tab=a\tb\nc", "tab", "a\tb\nc"),
        (r"caf\u00e9=\u00E9", "café", "é"),
        (r"odd=\q", "odd", "q"),
        ("listeners=PLAINTEXT://127.0.0.1:9092", "listeners", "PLAINTEXT://127.0.0.1:9092"),
        ("value=a#b", "value", "a#b"),
    ],
)
def test_a_line_is_read_as_java_reads_it(line: str, name: str, value: str) -> None:
    assert parse(line) == {name: value}


def test_comments_and_blank_lines_are_skipped() -> None:
    assert parse("# one\n\n   ! two\n \t\na=b\n#c=d\n") == {"a": "b"}


def test_every_kind_of_line_end_ends_a_line() -> None:
    assert parse("a=1\nb=2\r\nc=3\rd=4") == {"a": "1", "b": "2", "c": "3", "d": "4"}


def test_a_trailing_backslash_joins_lines_and_drops_leading_blanks() -> None:
    assert parse("a=one,\\\n   two,\\\r\n\tthree\nb=c") == {"a": "one,two,three", "b": "c"}


def test_an_even_number_of_backslashes_does_not_join() -> None:
    assert parse("a=one\\\\\nb=two") == {"a": "one\\", "b": "two"}


def test_a_comment_is_never_continued_but_a_continuation_may_look_like_one() -> None:
    assert parse("# comment \\\na=b\\\n#c") == {"a": "b#c"}


def test_a_continuation_at_the_end_of_the_text_ends_there() -> None:
    assert parse("a=b\\") == {"a": "b"}


def test_the_line_number_is_that_of_the_first_line() -> None:
    entries = parse_properties("# x\na=1,\\\n2\n\nb=3\n")
    assert [(entry.name, entry.line) for entry in entries] == [("a", 2), ("b", 5)]


def test_a_broken_unicode_escape_is_refused_with_its_line() -> None:
    with pytest.raises(PropertiesSyntaxError, match=r"line 2: .*four hexadecimal digits"):
        parse_properties("a=b\nc=\\u12x4")


def test_text_is_utf8_where_possible_and_latin1_otherwise() -> None:
    assert decode_properties("a=é".encode()) == "a=é"
    assert decode_properties("a=é".encode("latin-1")) == "a=é"
    assert decode_properties(b"\xef\xbb\xbfa=b") == "a=b"
