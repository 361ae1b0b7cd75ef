"""The one way in which all crash tests append.

Owns the choice between a leader's append and a follower's.
"""

from storage.append_info import AppendOrigin
from storage.log import Log
from tests.crash.journal import Acknowledged, Append


def append_to(log: Log, append: Append, leader_epoch: int) -> Acknowledged:
    """Append, and let readers see it."""
    if append.origin is AppendOrigin.REPLICATION:
        info = log.append_as_follower(append.payload)
    else:
        info = log.append_as_leader(bytearray(append.payload), leader_epoch, append.origin)
    assert not info.is_duplicate
    log.update_high_watermark(log.end_offset)
    return Acknowledged(append, info.first_offset, info.last_offset)
