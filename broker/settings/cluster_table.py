"""Settings of the cluster's work: replication, the controller, shutdown, fetching and quotas."""

from broker.settings.definition import at_least
from broker.settings.kafka_versions import KAFKA_RELEASE, LATEST_RELEASE
from broker.settings.kinds import (
    CLUSTER_WIDE,
    HIGH,
    LONG_MAX,
    LOW,
    MEDIUM,
    boolean,
    class_name,
    integer,
    long,
    string,
    words,
)


class ReplicationTable:
    min_insync_replicas = integer(
        1,
        HIGH,
        "Replicas in sync that a write with acks=all needs.",
        check=at_least(1),
        dynamic=CLUSTER_WIDE,
    )
    controller_socket_timeout_ms = integer(
        30000, MEDIUM, "How long the controller waits for a broker's answer."
    )
    replica_lag_time_max_ms = long(
        30000, HIGH, "How long a follower may lag before it leaves the in-sync replicas.", idle=True
    )
    replica_socket_timeout_ms = integer(
        30 * 1000, HIGH, "How long a follower waits for its leader's answer.", idle=True
    )
    replica_socket_receive_buffer_bytes = integer(
        64 * 1024, HIGH, "SO_RCVBUF of a follower's connections.", idle=True
    )
    replica_fetch_max_bytes = integer(
        1024 * 1024,
        MEDIUM,
        "Bytes a follower asks for per partition.",
        check=at_least(0),
        idle=True,
    )
    replica_fetch_wait_max_ms = integer(
        500, HIGH, "How long a leader may hold back a follower's fetch.", idle=True
    )
    replica_fetch_backoff_ms = integer(
        1000, MEDIUM, "A follower's pause after a failed fetch.", check=at_least(0), idle=True
    )
    replica_fetch_min_bytes = integer(
        1, HIGH, "Bytes for which a follower's fetch waits.", idle=True
    )
    replica_fetch_response_max_bytes = integer(
        10 * 1024 * 1024,
        MEDIUM,
        "Bytes a follower asks for in all.",
        check=at_least(0),
        idle=True,
    )
    num_replica_fetchers = integer(
        1,
        HIGH,
        "Connections over which a follower fetches from one leader.",
        dynamic=CLUSTER_WIDE,
        idle=True,
    )
    replica_high_watermark_checkpoint_interval_ms = long(
        5000, HIGH, "How often high watermarks are written down."
    )
    replica_selector_class = string(
        None, MEDIUM, "Class that picks the replica a consumer reads from.", idle=True
    )
    inter_broker_protocol_version = string(
        LATEST_RELEASE,
        MEDIUM,
        "Kafka release whose protocol brokers speak among themselves.",
        check=KAFKA_RELEASE,
    )


class ControllerTable:
    auto_leader_rebalance_enable = boolean(
        True, HIGH, "Give leadership back to preferred replicas by itself."
    )
    leader_imbalance_per_broker_percentage = integer(
        10,
        HIGH,
        "Share of a broker's partitions led elsewhere that starts a rebalance.",
    )
    leader_imbalance_check_interval_seconds = long(
        300, HIGH, "How often the balance of leaders is looked at."
    )
    unclean_leader_election_enable = boolean(
        False,
        HIGH,
        "Let a replica that is not in sync lead, at the price of lost records.",
        dynamic=CLUSTER_WIDE,
    )
    controlled_shutdown_max_retries = integer(
        3, MEDIUM, "Attempts to hand over leadership before stopping."
    )
    controlled_shutdown_retry_backoff_ms = long(5000, MEDIUM, "Pause between those attempts.")
    controlled_shutdown_enable = boolean(True, MEDIUM, "Hand over leadership before stopping.")


class RequestTable:
    fetch_max_bytes = integer(
        55 * 1024 * 1024, MEDIUM, "Largest answer to a fetch, in bytes.", check=at_least(1024)
    )
    max_incremental_fetch_session_cache_slots = integer(
        1000, MEDIUM, "Fetch sessions remembered.", check=at_least(0)
    )
    fetch_purgatory_purge_interval_requests = integer(
        1000, MEDIUM, "Finished fetches kept waiting for a sweep.", idle=True
    )
    producer_purgatory_purge_interval_requests = integer(
        1000, MEDIUM, "Finished produces kept waiting for a sweep.", idle=True
    )
    delete_records_purgatory_purge_interval_requests = integer(
        1, MEDIUM, "Finished deletions of records kept waiting for a sweep.", idle=True
    )


class QuotaTable:
    quota_producer_default = long(
        LONG_MAX,
        HIGH,
        "Bytes per second for a producer without a quota of its own (deprecated).",
        check=at_least(1),
        idle=True,
    )
    quota_consumer_default = long(
        LONG_MAX,
        HIGH,
        "Bytes per second for a consumer without a quota of its own (deprecated).",
        check=at_least(1),
        idle=True,
    )
    quota_window_num = integer(
        11, LOW, "Windows over which client quotas are measured.", check=at_least(1), idle=True
    )
    replication_quota_window_num = integer(
        11,
        LOW,
        "Windows over which replication quotas are measured.",
        check=at_least(1),
        idle=True,
    )
    alter_log_dirs_replication_quota_window_num = integer(
        11,
        LOW,
        "Windows over which moves between log directories are measured.",
        check=at_least(1),
        idle=True,
    )
    quota_window_size_seconds = integer(
        1, LOW, "Length of a window of client quotas.", check=at_least(1), idle=True
    )
    replication_quota_window_size_seconds = integer(
        1, LOW, "Length of a window of replication quotas.", check=at_least(1), idle=True
    )
    alter_log_dirs_replication_quota_window_size_seconds = integer(
        1,
        LOW,
        "Length of a window for moves between log directories.",
        check=at_least(1),
        idle=True,
    )
    client_quota_callback_class = class_name(LOW, "Class that decides client quotas.", idle=True)


class MetricsTable:
    metrics_num_samples = integer(
        2, LOW, "Samples kept for a metric.", check=at_least(1), idle=True
    )
    metrics_sample_window_ms = long(
        30000, LOW, "Time span of a sample.", check=at_least(1), idle=True
    )
    metric_reporters = words(
        (), LOW, "Classes to which metrics are reported.", dynamic=CLUSTER_WIDE, idle=True
    )
    metrics_recording_level = string("INFO", LOW, "Detail of the metrics recorded.", idle=True)
    kafka_metrics_reporters = words(
        (), LOW, "Classes to which server metrics are reported.", idle=True
    )
    kafka_metrics_polling_interval_secs = integer(
        10, LOW, "How often those reporters are called.", check=at_least(1), idle=True
    )
