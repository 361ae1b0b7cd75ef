"""The batches of a segment among themselves: offsets that grow, leader epochs that do not go back.

Owns who is to blame: base offset and leader epoch lie outside a batch's checksum, so where two
neighbours disagree either may have been changed. The one whose removal leaves the rest in order is
the one that is wrong.
"""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from analytics.audit.faults import Kind

KnownEpochs = Sequence[tuple[int, int]]


class Place(NamedTuple):
    """A sound batch."""

    base_offset: int
    last_offset: int
    position: int
    max_timestamp: int


class EpochStart(NamedTuple):
    """Where batches of another leader epoch begin."""

    epoch: int
    offset: int
    position: int


class Finding(NamedTuple):
    """Something wrong with a batch."""

    kind: Kind
    position: int
    offset: int | None
    detail: str


class BatchSequence:
    """Takes batches in the order of the file and finds those that do not belong there."""

    def __init__(self, offsets: range, known_epochs: KnownEpochs) -> None:
        """`offsets` are those that the segment may hold, by its name and the next one's."""
        self.places: list[Place] = []
        self.epochs: list[EpochStart] = []
        self.gaps: list[Finding] = []
        self.findings: list[Finding] = []
        self.is_misnamed = False
        self._offsets = offsets
        self._known_epochs = known_epochs
        self._below: list[Place] = []
        self._past: Place | None = None

    @property
    def next_offset(self) -> int:
        """The lowest offset that may come now."""
        return self.places[-1].last_offset + 1 if self.places else self._offsets.start

    def place_of(self, offset: int) -> Place | None:
        """The batch that an offset lies in."""
        slot = bisect_right(self.places, offset, key=lambda place: place.base_offset) - 1
        if slot < 0 or self.places[slot].last_offset < offset:
            return None
        return self.places[slot]

    def begins_with(self, offset: int) -> bool:
        """Whether an offset is the first of a batch."""
        place = self.place_of(offset)
        return place is not None and place.base_offset == offset

    def place_at(self, position: int) -> Place | None:
        """The batch that begins at a position."""
        slot = bisect_right(self.places, position, key=lambda place: place.position) - 1
        if slot < 0 or self.places[slot].position != position:
            return None
        return self.places[slot]

    def take(self, place: Place) -> bool:
        """Add a batch, unless its offsets are out of order."""
        if not self.places and self._below and place.base_offset > self._below[-1].last_offset:
            follows = place.base_offset == self._below[-1].last_offset + 1
            self.is_misnamed = self.is_misnamed or follows
            if place.base_offset < self._offsets.start:
                self._below.append(place)
                return False  # one of a file that is not what its name says: told at its first
        is_too_low = place.base_offset < self.next_offset and not self._forget_one_too_high(place)
        if is_too_low:
            what = f"{place.base_offset} comes where {self.next_offset} is due"
            self._find(Kind.OFFSET_ORDER, place, what)
            if not self.places:
                self._below.append(place)
            return False
        if place.last_offset not in self._offsets:
            self._go_past_end(place)
            return False
        if self.places and place.base_offset > self.next_offset:
            missing = f"{self.next_offset} to {place.base_offset - 1} are not there"
            self.gaps.append(Finding(Kind.OFFSET_GAP, place.position, place.base_offset, missing))
        self.places.append(place)
        return True

    def take_epoch(self, epoch: int, place: Place) -> None:
        """Note the leader epoch of a batch that was taken."""
        last = self.epochs[-1].epoch if self.epochs else None
        if last is None or epoch > last:
            self.epochs.append(EpochStart(epoch, place.base_offset, place.position))
        elif epoch < last:
            self._epoch_went_back(epoch, place)

    def _go_past_end(self, place: Place) -> None:
        """Told at the first of a run: where another segment's name lies within this one's offsets,
        all the rest does not belong."""
        if self._past is None or place.base_offset != self._past.last_offset + 1:
            what = f"{place.base_offset} to {place.last_offset} go past {self._offsets.stop - 1}"
            self._find(Kind.OFFSET_ORDER, place, f"{what}, the last of this segment")
        self._past = place

    def _forget_one_too_high(self, place: Place) -> bool:
        """Whether the batch before was the wrong one; it is dropped then."""
        if not self.places:
            return False
        suspect = self.places[-1]
        due = self.places[-2].last_offset + 1 if len(self.places) > 1 else self._offsets.start
        if suspect.base_offset == due or place.base_offset < due:
            return False
        self.places.pop()
        for noted in (self.gaps, self.epochs):
            if noted and noted[-1].position == suspect.position:
                noted.pop()
        what = f"{suspect.base_offset} comes where {due} is due"
        self._find(Kind.OFFSET_ORDER, suspect, what)
        return True

    def _epoch_went_back(self, epoch: int, place: Place) -> None:
        suspect = self.epochs[-1]
        before = self.epochs[-2].epoch if len(self.epochs) > 1 else -1
        is_suspect_wrong = epoch_at(self._known_epochs, place.base_offset) == epoch
        if is_suspect_wrong and before <= epoch:
            self.epochs.pop()
            what = f"{suspect.epoch} is followed by {epoch}"
            at = Place(suspect.offset, suspect.offset, suspect.position, -1)
            self._find(Kind.LEADER_EPOCH, at, what)
            if before < epoch:
                self.epochs.append(EpochStart(epoch, place.base_offset, place.position))
        else:
            self._find(Kind.LEADER_EPOCH, place, f"{epoch} follows {suspect.epoch}")

    def _find(self, kind: Kind, place: Place, detail: str) -> None:
        self.findings.append(Finding(kind, place.position, place.base_offset, detail))


def epoch_at(known: KnownEpochs, offset: int) -> int | None:
    """The epoch that a checkpoint has for an offset; None before its first entry."""
    slot = bisect_right(known, offset, key=lambda entry: entry[1]) - 1
    return known[slot][0] if slot >= 0 else None
