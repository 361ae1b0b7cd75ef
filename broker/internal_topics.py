"""The broker's own topics, made when first needed: their sizes, replicas and settings."""

from collections.abc import Callable, Mapping

from broker.settings import Settings
from broker.topic_names import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from broker.wanted_topics import NewTopic


def internal_topic(name: str, settings: Settings) -> NewTopic:
    """What an internal topic is created as."""
    return _SHAPES[name](settings)


def _group_metadata(settings: Settings) -> NewTopic:
    return NewTopic(
        GROUP_METADATA_TOPIC,
        settings.offsets_topic_num_partitions,
        settings.offsets_topic_replication_factor,
        config={
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(settings.offsets_topic_segment_bytes),
        },
    )


def _transaction_state(settings: Settings) -> NewTopic:
    return NewTopic(
        TRANSACTION_STATE_TOPIC,
        settings.transaction_state_log_num_partitions,
        settings.transaction_state_log_replication_factor,
        config={
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(settings.transaction_state_log_min_isr),
            "segment.bytes": str(settings.transaction_state_log_segment_bytes),
            "unclean.leader.election.enable": "false",
        },
    )


_SHAPES: Mapping[str, Callable[[Settings], NewTopic]] = {
    GROUP_METADATA_TOPIC: _group_metadata,
    TRANSACTION_STATE_TOPIC: _transaction_state,
}
