"""The Kafka releases by which message formats and inter-broker protocols are named."""

from broker.settings.definition import Constraint

_SUB_VERSIONS = {
    "0.8.0": 0,
    "0.8.1": 0,
    "0.8.2": 0,
    "0.9.0": 0,
    "0.10.0": 2,
    "0.10.1": 3,
    "0.10.2": 1,
    "0.11.0": 3,
    "1.0": 1,
    "1.1": 1,
    "2.0": 2,
    "2.1": 3,
    "2.2": 2,
    "2.3": 2,
    "2.4": 2,
    "2.5": 1,
}
"""Each release and the number of its internal versions, 2.4-IV0 and 2.4-IV1 being two."""

KNOWN_RELEASES = frozenset(_SUB_VERSIONS) | {
    f"{release}-IV{number}" for release, count in _SUB_VERSIONS.items() for number in range(count)
}

LATEST_RELEASE = "2.5-IV0"


def is_kafka_release(text: str) -> bool:
    """True for 2.5, 2.5-IV0 and 2.5.1 alike: figures behind the release's own do not count."""
    significant = 3 if text.startswith("0.") else 2
    return ".".join(text.split(".")[:significant]) in KNOWN_RELEASES


def message_format_of(release: str) -> int:
    """The magic number of the messages that a release writes."""
    major, minor = (int(part) for part in release.split("-")[0].split(".")[:2])
    if (major, minor) < (0, 10):
        return 0
    return 1 if (major, minor) < (0, 11) else 2


KAFKA_RELEASE = Constraint("a Kafka release up to 2.5, such as 2.5 or 2.4-IV1", is_kafka_release)
