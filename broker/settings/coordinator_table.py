"""Settings of the coordinators: consumer groups, committed offsets, transactions."""

from broker.settings.definition import at_least
from broker.settings.kinds import HIGH, INT_MAX, LOW, MEDIUM, integer, long, short


class GroupTable:
    group_min_session_timeout_ms = integer(
        6000, MEDIUM, "Shortest session timeout a consumer may ask for."
    )
    group_max_session_timeout_ms = integer(
        30 * 60 * 1000, MEDIUM, "Longest session timeout a consumer may ask for."
    )
    group_initial_rebalance_delay_ms = integer(
        3000, MEDIUM, "How long a new group waits for more members."
    )
    group_max_size = integer(INT_MAX, MEDIUM, "Members a group may have.", check=at_least(1))


class OffsetsTable:
    offset_metadata_max_bytes = integer(
        4096, HIGH, "Largest note that may go with a committed offset."
    )
    offsets_load_buffer_size = integer(
        5 * 1024 * 1024,
        HIGH,
        "Bytes read at a time when offsets are loaded.",
        check=at_least(1),
    )
    offsets_topic_replication_factor = short(
        3, HIGH, "Replicas of the offsets topic.", check=at_least(1)
    )
    offsets_topic_num_partitions = integer(
        50,
        HIGH,
        "Partitions of the offsets topic; fixed once it exists.",
        check=at_least(1),
    )
    offsets_topic_segment_bytes = integer(
        100 * 1024 * 1024,
        HIGH,
        "Segment size of the offsets topic.",
        check=at_least(1),
    )
    offsets_topic_compression_codec = integer(
        0, HIGH, "Codec of the offsets topic: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd."
    )
    offsets_retention_minutes = integer(
        7 * 24 * 60,
        HIGH,
        "How long the offsets of a group without members are kept.",
        check=at_least(1),
    )
    offsets_retention_check_interval_ms = long(
        10 * 60 * 1000,
        HIGH,
        "How often offsets are looked through for expiry.",
        check=at_least(1),
    )
    offsets_commit_timeout_ms = integer(
        5000,
        HIGH,
        "How long a commit waits for the replicas of the offsets topic.",
        check=at_least(1),
    )
    offsets_commit_required_acks = short(
        -1, HIGH, "Acknowledgements a commit needs; leave it at -1."
    )


class TransactionTable:
    transactional_id_expiration_ms = integer(
        7 * 24 * 60 * 60 * 1000,
        HIGH,
        "How long an unused transactional id is remembered.",
        check=at_least(1),
        idle=True,
    )
    transaction_max_timeout_ms = integer(
        15 * 60 * 1000,
        HIGH,
        "Longest timeout a transaction may ask for.",
        check=at_least(1),
        idle=True,
    )
    transaction_state_log_min_isr = integer(
        2,
        HIGH,
        "Replicas in sync that the transaction topic needs.",
        check=at_least(1),
    )
    transaction_state_log_load_buffer_size = integer(
        5 * 1024 * 1024,
        HIGH,
        "Bytes read at a time when transactions are loaded.",
        check=at_least(1),
        idle=True,
    )
    transaction_state_log_replication_factor = short(
        3, HIGH, "Replicas of the transaction topic.", check=at_least(1)
    )
    transaction_state_log_num_partitions = integer(
        50,
        HIGH,
        "Partitions of the transaction topic; fixed once it exists.",
        check=at_least(1),
    )
    transaction_state_log_segment_bytes = integer(
        100 * 1024 * 1024,
        HIGH,
        "Segment size of the transaction topic.",
        check=at_least(1),
    )
    transaction_abort_timed_out_transaction_cleanup_interval_ms = integer(
        10 * 1000,
        LOW,
        "How often transactions past their timeout are aborted.",
        check=at_least(1),
        idle=True,
    )
    transaction_remove_expired_transaction_cleanup_interval_ms = integer(
        60 * 60 * 1000,
        LOW,
        "How often expired transactional ids are removed.",
        check=at_least(1),
        idle=True,
    )
