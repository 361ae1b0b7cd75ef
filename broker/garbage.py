"""The pauses of Python's garbage collector, during which nobody is served.

A full collection looks at every object. What the start has left (code, classes, tables: most of
them) lives as long as the broker, so it is set aside once; looking at it again and again took 25 ms
each time. What remains is looked at less often than by default: most objects here die by their
reference counts, and those that survive are members, connections and partitions, which stay.
"""

import gc
from typing import Final

# New objects until the young are looked at, and how often that is done until the older ones are.
THRESHOLDS: Final = (5_000, 20, 50)


def set_aside_what_stays() -> None:
    """To be called when the start is over."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
