"""The inventory as a person reads it: one table, totals, and notes on what could not be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analytics.logs.partitions import PartitionLog

MOST_PARTITIONS = 100

_ANY_WIDTH = 10_000


@dataclass(frozen=True, slots=True)
class InventoryRow:
    """What one partition holds; offsets and times are absent where it is empty."""

    log_dir: str
    topic: str
    partition: int
    records: int
    bytes: int
    first_offset: int | None = None
    last_offset: int | None = None
    first_timestamp_ms: int | None = None
    last_timestamp_ms: int | None = None


def with_empty_partitions(
    rows: Iterable[InventoryRow], partitions: Iterable[PartitionLog]
) -> list[InventoryRow]:
    """The rows, and one for each partition that has no batches and so left none."""
    counted = {(row.log_dir, row.topic, row.partition): row for row in rows}
    for log in partitions:
        key = (log.log_dir, log.topic, log.partition)
        counted.setdefault(key, InventoryRow(*key, records=0, bytes=0))
    return [counted[key] for key in sorted(counted)]


def unread_tails(rows: Iterable[InventoryRow], partitions: Iterable[PartitionLog]) -> list[str]:
    """A line for each partition whose files were longer than the batches found in them."""
    counted = {(row.log_dir, row.topic, row.partition): row.bytes for row in rows}
    return [
        f"{log.topic}-{log.partition}: {left:,} bytes hold no whole batch (a torn tail, or damage)"
        for log in partitions
        if (left := log.size - counted.get((log.log_dir, log.topic, log.partition), 0)) > 0
    ]


def print_inventory(rows: Sequence[InventoryRow], notes: Iterable[str], console: Console) -> None:
    """The totals are those of all rows, of which the largest are shown."""
    _print_whole(inventory_table(rows), console)
    if len(rows) > MOST_PARTITIONS:
        more = f"... and {len(rows) - MOST_PARTITIONS:,} smaller partitions; --out writes all"
        console.print(more, markup=False, highlight=False, soft_wrap=True)
    for note in notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def print_table(
    head: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str]], console: Console
) -> None:
    """Rows of text below the names of their columns, which are numbers or not."""
    table = Table(box=None, pad_edge=False)
    for name, is_number in head:
        table.add_column(Text(name), justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(Text, row))
    _print_whole(table, console)


def _print_whole(table: Table, console: Console) -> None:
    """Figures are shown whole: a terminal that is too narrow for the table folds its lines."""
    needed = console.measure(table, options=console.options.update(max_width=_ANY_WIDTH)).maximum
    console.width = max(console.width, needed)
    console.print(table)


def _largest(rows: Sequence[InventoryRow]) -> list[InventoryRow]:
    """The rows that are shown, in the order in which they came."""
    by_size = sorted(range(len(rows)), key=lambda number: -rows[number].bytes)
    return [rows[number] for number in sorted(by_size[:MOST_PARTITIONS])]


def inventory_table(rows: Sequence[InventoryRow]) -> Table:
    several = len({row.log_dir for row in rows}) > 1
    table = Table(box=None, pad_edge=False, show_footer=True)
    if several:
        table.add_column("Log\ndirectory", no_wrap=True)
    total_records = f"{sum(row.records for row in rows):,}"
    total_bytes = f"{sum(row.bytes for row in rows):,}"
    table.add_column("\nTopic", footer="Total", no_wrap=True)
    table.add_column("\nPartition", justify="right", no_wrap=True)
    table.add_column("\nRecords", justify="right", footer=total_records, no_wrap=True)
    table.add_column("\nBytes", justify="right", footer=total_bytes, no_wrap=True)
    table.add_column("First\noffset", justify="right", no_wrap=True)
    table.add_column("Last\noffset", justify="right", no_wrap=True)
    table.add_column("First record\n(UTC)", no_wrap=True)
    table.add_column("Last record\n(UTC)", no_wrap=True)
    for row in _largest(rows):
        where = [Text(row.log_dir)] if several else []
        table.add_row(
            *where,
            Text(row.topic),
            str(row.partition),
            f"{row.records:,}",
            f"{row.bytes:,}",
            _shown(row.first_offset),
            _shown(row.last_offset),
            _moment(row.first_timestamp_ms),
            _moment(row.last_timestamp_ms),
        )
    return table


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)


def _moment(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "-"
    return f"{datetime.fromtimestamp(timestamp_ms // 1000, UTC):%Y-%m-%d %H:%M:%S}"
