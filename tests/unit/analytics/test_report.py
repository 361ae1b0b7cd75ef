import io
from pathlib import Path

from rich.console import Console

from analytics.logs.partitions import find_partitions
from analytics.report import (
    InventoryRow,
    print_inventory,
    unread_tails,
    with_empty_partitions,
)
from tests.unit.analytics.segments import START_MS, batch, write_segment


def printed(rows: list[InventoryRow], *notes: str, width: int = 80) -> list[str]:
    stream = io.StringIO()
    print_inventory(rows, notes, Console(file=stream, width=width))
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_a_row_shows_counts_offsets_and_times_and_the_last_line_totals() -> None:
    one = InventoryRow("d", "orders", 0, 1234, 56789, 3, 1236, START_MS, START_MS + 1)
    other = InventoryRow("d", "orders", 1, 0, 0)
    _, header, first, second, total = printed([one, other])
    assert header.split()[:4] == ["Topic", "Partition", "Records", "Bytes"]
    shown_times = ["2023-11-14", "22:13:20", "2023-11-14", "22:13:20"]
    assert first.split() == ["orders", "0", "1,234", "56,789", "3", "1236", *shown_times]
    assert second.split() == ["orders", "1", "0", "0", "-", "-", "-", "-"]
    assert total.split() == ["Total", "1,234", "56,789"]


def test_the_log_directory_is_shown_only_where_there_are_several() -> None:
    rows = [InventoryRow("one", "t", 0, 1, 1), InventoryRow("two", "t", 0, 1, 1)]
    assert printed(rows)[1].startswith("directory")
    assert printed(rows[:1])[1].startswith("Topic")


def test_figures_and_names_are_whole_on_a_narrow_terminal() -> None:
    long_name = "a-topic-with-a-rather-long-name"
    row = InventoryRow("d", long_name, 0, 10**12, 10**15, 10**9, 10**10, START_MS, START_MS)
    (shown,) = [line for line in printed([row], width=40) if long_name in line]
    assert "1,000,000,000,000 " in shown
    assert "1,000,000,000,000,000 " in shown


def test_names_that_look_like_markup_and_notes_are_printed_as_they_are() -> None:
    lines = printed([InventoryRow("d", "[red]t[/red]", 0, 1, 1)], "[bold]note")
    assert "[red]t[/red]" in lines[2]
    assert lines[-1] == "[bold]note"


def test_of_many_partitions_the_largest_are_shown_and_all_totalled() -> None:
    rows = [InventoryRow("d", "t", number, 1, number) for number in range(1000)]
    _, _, first, *others, total, more = printed(rows)
    assert first.split()[:2] == ["t", "900"]
    assert len(others) == 99
    assert total.split()[:2] == ["Total", "1,000"]
    assert more == "... and 900 smaller partitions; --out writes all"


def test_partitions_without_batches_are_rows_of_zeros(tmp_path: Path) -> None:
    write_segment(tmp_path, "a-0", 0)
    write_segment(tmp_path, "a-1", 0, [batch(0, 1)])
    counted = [InventoryRow(str(tmp_path), "a", 1, 1, 80, 0, 0)]
    rows = with_empty_partitions(counted, find_partitions(tmp_path))
    assert [(row.partition, row.records) for row in rows] == [(0, 0), (1, 1)]


def test_bytes_that_no_batch_accounts_for_are_noted(tmp_path: Path) -> None:
    whole = batch(0, 1)
    write_segment(tmp_path, "a-0", 0, [whole, b"torn"])
    write_segment(tmp_path, "a-1", 0, [whole])
    partitions = find_partitions(tmp_path)
    counted = [InventoryRow(str(tmp_path), "a", p, 1, len(whole), 0, 0) for p in (0, 1)]
    assert unread_tails(counted, partitions) == [
        "a-0: 4 bytes hold no whole batch (a torn tail, or damage)"
    ]
