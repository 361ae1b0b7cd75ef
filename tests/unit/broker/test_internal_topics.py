from broker.internal_topics import internal_topic
from broker.settings import load_settings


def test_offsets_topic_is_compacted_in_the_producers_own_codec() -> None:
    topic = internal_topic("__consumer_offsets", load_settings(None, (), {}))
    assert (topic.partitions, topic.replication_factor) == (50, 3)
    assert topic.config == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }


def test_transaction_topic_never_loses_what_two_replicas_have() -> None:
    given = ("transaction.state.log.num.partitions=4", "transaction.state.log.min.isr=1")
    topic = internal_topic("__transaction_state", load_settings(None, given, {}))
    assert (topic.partitions, topic.replication_factor) == (4, 3)
    assert topic.config == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
