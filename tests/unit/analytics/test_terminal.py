"""What the command prints of answers that somebody asked for by name."""

import pytest

from analytics.answers import Answer, Rows
from analytics.terminal import tell


def printed(
    answers: dict[str, Answer], capsys: pytest.CaptureFixture[str], has_tables: bool = True
) -> list[str]:
    tell(answers, [], [], has_tables)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def fault(number: int) -> dict[str, object]:
    return {"file": f"/f{number}", "position": None, "kind": "wrong checksum", "detail": "changed"}


def test_an_answer_is_a_short_table_with_the_largest_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows: Rows = [{"topic": f"t{number}", "codec": "gzip", "bytes": number} for number in range(50)]
    lines = printed({"codecs": Answer.of(rows)}, capsys)
    assert lines[0] == "Codecs in use:"
    assert lines[1].split() == ["topic", "codec", "bytes"]
    assert lines[2].split() == ["t49", "gzip", "49", "B"]
    assert len(lines) == 2 + 20 + 1
    assert lines[-1] == "... and 30 more; --out writes all"


def test_an_empty_answer_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed({"gaps": Answer.of([])}, capsys) == ["The longest pauses in traffic: nothing."]


def test_tables_that_were_written_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed({"gaps": Answer.of([])}, capsys, has_tables=False) == []


def test_what_a_terminal_would_obey_is_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    rows: Rows = [{"group": "\x1b[31mred\n", "topic": "[b]t", "partition": 0, "lag": None}]
    [_, _, line] = printed({"lag": Answer.of(rows)}, capsys)
    assert line.split() == ["\\x1b[31mred\\n", "[b]t", "0", "-"]


def test_of_many_faults_the_first_are_named_and_all_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows: Rows = [fault(number) for number in range(50)]
    counted: Rows = [{"kind": "wrong checksum", "faults": 9_000}]
    *named, more, told = printed({"faults": Answer(rows, 9_000, counted)}, capsys)
    assert len(named) == 20
    assert more == "... and 8,980 more; --out writes all"
    assert told == "The audit found 9,000 faults: 9,000 x wrong checksum."
