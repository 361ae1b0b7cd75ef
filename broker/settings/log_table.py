"""Settings of the logs: directories, segments, retention, cleaning, flushing, message formats."""

import sys

from broker.settings.definition import all_of, at_least, one_of
from broker.settings.kafka_versions import KAFKA_RELEASE, LATEST_RELEASE
from broker.settings.kinds import (
    CLUSTER_WIDE,
    HIGH,
    LONG_MAX,
    LOW,
    MEDIUM,
    boolean,
    double,
    integer,
    long,
    string,
    words,
)

RECORD_OVERHEAD_V0 = 14  # the smallest message of the oldest format: no segment may be smaller

DEFAULT_LOG_DIR = "/tmp/kafka-logs"

COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class LogTable:
    log_dir = string(DEFAULT_LOG_DIR, HIGH, "Directory of the logs where log.dirs is not set.")
    log_dirs = string(None, HIGH, "Directories of the logs, separated by commas.")
    log_segment_bytes = integer(
        1024**3,
        HIGH,
        "Size at which a segment file is closed and the next begun.",
        check=at_least(RECORD_OVERHEAD_V0),
        dynamic=CLUSTER_WIDE,
    )
    log_roll_ms = long(
        None,
        HIGH,
        "Age at which a segment is closed; before log.roll.hours.",
        dynamic=CLUSTER_WIDE,
    )
    log_roll_hours = integer(
        24 * 7, HIGH, "Age in hours at which a segment is closed.", check=at_least(1)
    )
    log_roll_jitter_ms = long(
        None,
        HIGH,
        "Random share taken off the roll time; before log.roll.jitter.hours.",
        dynamic=CLUSTER_WIDE,
    )
    log_roll_jitter_hours = integer(
        0, HIGH, "Random share taken off the roll time, in hours.", check=at_least(0)
    )
    log_retention_ms = long(
        None,
        HIGH,
        "Age at which a segment is deleted, before the minutes and hours; -1: never.",
        dynamic=CLUSTER_WIDE,
    )
    log_retention_minutes = integer(
        None, HIGH, "Age in minutes at which a segment is deleted; before the hours."
    )
    log_retention_hours = integer(24 * 7, HIGH, "Age in hours at which a segment is deleted.")
    log_retention_bytes = long(
        -1,
        HIGH,
        "Size of a partition above which its oldest segments go; -1: no limit.",
        dynamic=CLUSTER_WIDE,
    )
    log_retention_check_interval_ms = long(
        5 * 60 * 1000,
        MEDIUM,
        "How often segments are looked through for deletion.",
        check=at_least(1),
    )
    log_cleanup_policy = words(
        ("delete",),
        MEDIUM,
        "What becomes of old segments: delete, compact, or both.",
        check=all_of("compact", "delete"),
        dynamic=CLUSTER_WIDE,
    )
    log_index_size_max_bytes = integer(
        10 * 1024 * 1024,
        MEDIUM,
        "Largest size of an index file.",
        check=at_least(4),
        dynamic=CLUSTER_WIDE,
    )
    log_index_interval_bytes = integer(
        4096,
        MEDIUM,
        "Bytes of log between two entries of the index.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    log_flush_interval_messages = long(
        LONG_MAX,
        HIGH,
        "Records appended to a log before it is forced to disk.",
        check=at_least(1),
        dynamic=CLUSTER_WIDE,
    )
    log_segment_delete_delay_ms = long(
        60000,
        HIGH,
        "Time between a segment's removal from the log and from the disk.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    log_flush_scheduler_interval_ms = long(
        LONG_MAX, HIGH, "How often logs are looked through for a due flush."
    )
    log_flush_interval_ms = long(
        None,
        HIGH,
        "Age of unflushed records that forces a flush; the scheduler's when absent.",
        dynamic=CLUSTER_WIDE,
    )
    log_flush_offset_checkpoint_interval_ms = integer(
        60000,
        HIGH,
        "How often the recovery points are written down.",
        check=at_least(0),
    )
    log_flush_start_offset_checkpoint_interval_ms = integer(
        60000,
        HIGH,
        "How often the logs' start offsets are written down.",
        check=at_least(0),
    )
    log_preallocate = boolean(
        False,
        MEDIUM,
        "Reserve a segment's whole size when it is created.",
        dynamic=CLUSTER_WIDE,
    )
    num_recovery_threads_per_data_dir = integer(
        1,
        HIGH,
        "Threads per directory that load logs at start and flush them at stop.",
        check=at_least(1),
        dynamic=CLUSTER_WIDE,
    )
    log_message_format_version = string(
        LATEST_RELEASE,
        MEDIUM,
        "Kafka release whose message format the logs hold.",
        check=KAFKA_RELEASE,
    )
    log_message_timestamp_type = string(
        "CreateTime",
        MEDIUM,
        "Whose clock stamps records: the producer's or the broker's.",
        check=one_of("CreateTime", "LogAppendTime"),
        dynamic=CLUSTER_WIDE,
    )
    log_message_timestamp_difference_max_ms = long(
        LONG_MAX,
        MEDIUM,
        "How far a producer's timestamp may lie from the broker's clock.",
        dynamic=CLUSTER_WIDE,
    )
    log_message_downconversion_enable = boolean(
        True,
        LOW,
        "Convert messages for consumers that know only older formats.",
        dynamic=CLUSTER_WIDE,
    )
    compression_type = string(
        "producer",
        HIGH,
        "Codec in which batches are stored; producer keeps the one they came in.",
        check=one_of(*COMPRESSION_TYPES, fold_case=True),
        dynamic=CLUSTER_WIDE,
    )


class CleanerTable:
    log_cleaner_enable = boolean(True, MEDIUM, "Run the compaction of logs.")
    log_cleaner_threads = integer(
        1, MEDIUM, "Compactions at a time.", check=at_least(0), dynamic=CLUSTER_WIDE
    )
    log_cleaner_io_max_bytes_per_second = double(
        sys.float_info.max,
        MEDIUM,
        "Bytes per second that compaction may read and write.",
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_dedupe_buffer_size = long(
        128 * 1024 * 1024,
        MEDIUM,
        "Memory for the keys seen, over all cleaner threads.",
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_size = integer(
        512 * 1024,
        MEDIUM,
        "Memory for reading and writing, over all cleaner threads.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_io_buffer_load_factor = double(
        0.9, MEDIUM, "How full the memory for keys may get.", dynamic=CLUSTER_WIDE
    )
    log_cleaner_backoff_ms = long(
        15 * 1000,
        MEDIUM,
        "Pause when there is nothing to compact.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_min_cleanable_ratio = double(
        0.5,
        MEDIUM,
        "Share of a log that must be uncompacted before it is worth the work.",
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_delete_retention_ms = long(
        24 * 60 * 60 * 1000,
        MEDIUM,
        "How long deletion markers stay in a compacted log.",
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_min_compaction_lag_ms = long(
        0,
        MEDIUM,
        "Age below which a record is not compacted away.",
        dynamic=CLUSTER_WIDE,
    )
    log_cleaner_max_compaction_lag_ms = long(
        LONG_MAX,
        MEDIUM,
        "Age at which a record must have been through compaction.",
        dynamic=CLUSTER_WIDE,
    )
