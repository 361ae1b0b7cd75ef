"""The settings of the group coordinator, by its own names."""

from dataclasses import dataclass
from typing import Final

from broker.groups.store import StoreSettings
from broker.settings import Settings
from storage.records import Codec

_MS_PER_MINUTE: Final = 60 * 1000

#  inter.broker.protocol.version below ... asks for version ...
_GROUP_VALUE_VERSIONS: Final = (((0, 10, 1), 0), ((2, 1), 1), ((2, 3), 2))
_NEWEST_GROUP_VALUE: Final = 3
_FIRST_RELEASE_WITH_STATIC_MEMBERS: Final = (2, 3)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What groups and their offsets may and must do."""

    min_session_timeout_ms: int
    max_session_timeout_ms: int
    initial_rebalance_delay_ms: int
    max_size: int
    max_metadata_length: int
    retention_ms: int
    load_buffer_bytes: int
    knows_static_members: bool
    store: StoreSettings


def group_settings(settings: Settings) -> GroupSettings:
    release = settings.inter_broker_protocol_version
    return GroupSettings(
        min_session_timeout_ms=settings.group_min_session_timeout_ms,
        max_session_timeout_ms=settings.group_max_session_timeout_ms,
        initial_rebalance_delay_ms=settings.group_initial_rebalance_delay_ms,
        max_size=settings.group_max_size,
        max_metadata_length=settings.offset_metadata_max_bytes,
        retention_ms=settings.offsets_retention_minutes * _MS_PER_MINUTE,
        load_buffer_bytes=settings.offsets_load_buffer_size,
        knows_static_members=_numbers(release) >= _FIRST_RELEASE_WITH_STATIC_MEMBERS,
        store=StoreSettings(
            codec=Codec(settings.offsets_topic_compression_codec),
            required_acks=settings.offsets_commit_required_acks,
            timeout_ms=settings.offsets_commit_timeout_ms,
            group_value_version=group_value_version(release),
            offset_value_version=offset_value_version(release),
        ),
    )


def group_value_version(release: str) -> int:
    """What brokers of a release can read of a group."""
    numbers = _numbers(release)
    return next(
        (version for first, version in _GROUP_VALUE_VERSIONS if numbers < first),
        _NEWEST_GROUP_VALUE,
    )


def offset_value_version(release: str) -> int | None:
    """What brokers of a release can read of an offset; None for the newest."""
    numbers = _numbers(release)
    if numbers < (2, 1):
        return 1
    return 2 if release.endswith("2.1-IV0") else None


def _numbers(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.partition("-")[0].split("."))
