"""The common ground of what compiles decoders: how a run is fetched.

At the start and the end of each run the variable `pos` is the present position. Within one it
stays behind, and what stands `k` bytes after the start of the run is at `pos + k`, because the
bytes of a field of variable size are added to `pos` as soon as it is read.
"""

from typing import NamedTuple

from network.protocol.compiler.plan import Region, Run, Value, codes_of, size_of
from network.protocol.compiler.source import Source


class RunCompiler:
    """Writes the statements that fetch runs and store what they hold."""

    def __init__(self, source: Source, version: int, *, flexible: bool) -> None:
        self.source = source
        self.version = version
        self.flexible = flexible
        self.line = source.line
        self.block = source.block

    def set_up(self, region: Region) -> None:
        for statement in region.setup:
            self.line(statement)

    def fetch(self, run: Run, at: str, names: list[str]) -> None:
        """Fetch a run into variables with one call."""
        codes = codes_of(run)
        if codes == "B":
            self.line(f"{names[0]} = data[{at}]")
        else:
            comma = "," if len(names) == 1 else ""
            unpack = self.source.layout(codes, "unpack_from")
            self.line(f"{', '.join(names)}{comma} = {unpack}(data, {at})")

    def fetch_ahead(self, rest: "Rest", at: int) -> None:
        """Fetch a run, with the first run of the element that may follow it.

        If there is no such element, what stands there is fetched, and nobody looks at it.
        """
        run, ahead, remaining = rest
        names = [reading.variable for reading in run]
        if not ahead:
            self.fetch(run, position(at), names)
        elif size_of(ahead) <= remaining:
            self.fetch([*run, *ahead], position(at), names + local_names(ahead))
        else:
            with self.block(f"if {position(at + size_of([*run, *ahead]))} <= size:"):
                self.fetch([*run, *ahead], position(at), names + local_names(ahead))
            with self.block("else:"):
                self.fetch(run, position(at), names)

    def fetch_again(self, rest: "Rest", at: int) -> None:
        """Fetch the rest of a run, behind a field that was not empty."""
        if rest.run:
            self.fetch_ahead(rest, at)

    def take_locals(self, run: Run) -> None:
        """Store what was fetched before its owner existed."""
        for reading, name in zip(run, local_names(run), strict=True):
            if isinstance(reading, Value):
                self.line(f"{reading.variable} = {name}")

    def widen(self, length: str, at: int) -> None:
        """Read the rest of a varint of which only the first byte is in `length`."""
        with self.block(f"if {length} > 127:"):
            self.line(f"{length}, pos = widen_uvarint({length}, data, pos, {at})")


class Rest(NamedTuple):
    """What remains of a run behind one of its readings.

    `ahead` is the first run of the elements that the last count of the run announces, and at
    least `remaining` bytes follow the run even if there are none.
    """

    run: Run
    ahead: Run
    remaining: int


def position(at: int) -> str:
    """The expression of a place within a run."""
    return f"pos + {at}" if at else "pos"


def local_names(run: Run) -> list[str]:
    """Names for a run that is fetched before the struct that it fills exists."""
    return [reading.variable.replace(".", "_") for reading in run]


def field_name(target: str) -> str:
    """The field of a target such as `item.name`."""
    return target.rpartition(".")[2]
