"""The inventory as a person reads it: one table, totals, and notes on what could not be read."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analytics.log_dirs import PartitionLog

_WIDTH_OF_A_FILE = 200  # off a terminal nothing is gained by folding lines


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
    console.print(inventory_table(rows))
    for note in notes:
        console.print(note, markup=False, highlight=False, soft_wrap=True)


def inventory_table(rows: Sequence[InventoryRow]) -> Table:
    several = len({row.log_dir for row in rows}) > 1
    table = Table(box=None, pad_edge=False, show_footer=True)
    if several:
        table.add_column("Log directory", overflow="fold")
    total_records = f"{sum(row.records for row in rows):,}"
    total_bytes = f"{sum(row.bytes for row in rows):,}"
    table.add_column("Topic", footer="Total", overflow="fold")
    table.add_column("Partition", justify="right")
    table.add_column("Records", justify="right", footer=total_records)
    table.add_column("Bytes", justify="right", footer=total_bytes)
    table.add_column("First offset", justify="right")
    table.add_column("Last offset", justify="right")
    table.add_column("First record (UTC)", no_wrap=True)
    table.add_column("Last record (UTC)", no_wrap=True)
    for row in rows:
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


def output_console() -> Console:
    """As wide as the terminal; a file or a pipe gets lines in full."""
    console = Console()
    return console if console.is_terminal else Console(width=_WIDTH_OF_A_FILE)


def _shown(number: int | None) -> str:
    return "-" if number is None else str(number)


def _moment(timestamp_ms: int | None) -> str:
    if timestamp_ms is None:
        return "-"
    moment = datetime.fromtimestamp(timestamp_ms / 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{timestamp_ms % 1000:03d}"
