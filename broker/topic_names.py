"""Which names a topic may have, and which are the broker's own."""

import re
from collections.abc import Iterable

from broker.failures import ApiError
from network.protocol import ErrorCode

GROUP_METADATA_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC})

MAX_LENGTH = 249
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(topic: str) -> bool:
    return topic in INTERNAL_TOPICS


def check_name(topic: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION for a name that cannot be a directory and a metric."""
    if not topic:
        problem = "is empty"
    elif topic in (".", ".."):
        problem = "is a relative directory"
    elif len(topic) > MAX_LENGTH:
        problem = f"is longer than {MAX_LENGTH} characters"
    elif not LEGAL_NAME.fullmatch(topic):
        problem = "has characters other than ASCII letters, digits, '.', '_' and '-'"
    else:
        return
    raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"The topic name {topic!r} {problem}")


def check_collision(topic: str, existing: Iterable[str]) -> None:
    """'.' and '_' are the same in names of metrics; refuse a topic that differs only there."""
    if "_" not in topic and "." not in topic:
        return
    folded = topic.replace(".", "_")
    colliding = sorted(other for other in existing if other.replace(".", "_") == folded)
    if colliding:
        raise ApiError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"Topic '{topic}' collides with existing topics: {', '.join(colliding)}",
        )
