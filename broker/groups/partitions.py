"""Which partition of `__consumer_offsets` a group lives on."""

from typing import Final

_INT_MIN: Final = -(1 << 31)


def java_hash(text: str) -> int:
    """Java's hash of a string: over its UTF-16 units, in 32 bits with a sign."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8 | units[position + 1])) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def partition_for(group_id: str, partitions: int) -> int:
    """The smallest number has no positive counterpart in Java; Kafka takes 0 for it."""
    number = java_hash(group_id)
    return 0 if number == _INT_MIN else abs(number) % partitions
