"""What can be wrong with a segment that is read, and what a reader does about it.

Owns the kinds of damage and the columns of the problems table. Readers report each problem once,
where they meet it; the policy says whether that ends the query.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import NamedTuple

from analytics.decoding.header_kernel import Stop
from analytics.decoding.windows import Walk
from analytics.errors import AnalysisError
from analytics.pieces import Piece


class Kind(StrEnum):
    """What a problem is."""

    TORN_TAIL = "torn tail"  # bytes at the end of a log that are not a whole batch (yet)
    CUT_OFF = "cut off"  # the same where more of the log follows
    NOT_A_BATCH = "not a batch"  # bytes in the middle that cannot begin one
    WRONG_CRC = "wrong crc"
    UNREADABLE = "unreadable records"  # the checksum is right, and still the records are not


class Problem(NamedTuple):
    """One problem and its place. The bytes are those that could not be read because of it."""

    topic: str
    partition: int
    kind: Kind
    base_offset: int | None
    position: int
    bytes: int
    detail: str
    log_dir: str
    segment: str

    def __str__(self) -> str:
        where = f"{self.segment}, position {self.position}"
        return f"{where}: {self.kind}: {self.detail}"


class DamagedLogError(AnalysisError):
    """Damage that a reader was not told to skip."""


Report = Callable[[Problem], None]


def fail(problem: Problem) -> None:
    """The policy of a reader that stops at damage. A log that is written may end with half a
    batch, and a broker that was killed leaves one: that is its end, and no damage."""
    if problem.kind is Kind.TORN_TAIL:
        return
    raise DamagedLogError(
        f'{problem}; option("onDamage", "skip") reads what is left, and format'
        '("barnabas-problems") lists all damage'
    )


def skip(_problem: Problem) -> None:
    """The policy of a reader that passes over damage."""


def problem_in(
    piece: Piece, kind: Kind, base_offset: int | None, position: int, size: int, detail: str
) -> Problem:
    """A problem within a piece."""
    segment = piece.segment
    return Problem(
        segment.topic, segment.partition, kind, base_offset, position, size, detail,
        segment.log_dir, segment.path,
    )  # fmt: skip


def report_end(walk: Walk, piece: Piece, report: Report) -> None:
    """Report why a walk over a piece ended before its end."""
    rest = piece.end - walk.position
    is_end_of_log = piece.segment.is_last and piece.end >= piece.segment.size
    if is_end_of_log and walk.is_zero_from_here():
        return  # the unused part of a preallocated file
    if walk.stop == Stop.NO_BATCH:
        kind, detail = Kind.NOT_A_BATCH, f"{rest} bytes from here on cannot be read"
    else:
        kind = Kind.TORN_TAIL if is_end_of_log else Kind.CUT_OFF
        detail = f"the last {rest} bytes are not a whole batch"
    report(problem_in(piece, kind, None, walk.position, rest, detail))


def policy(skips_damage: bool) -> Report:
    return skip if skips_damage else fail
