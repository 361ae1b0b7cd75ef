"""What is written to Apache Kafka so that its logs show all that a log can hold.

Owns topics, their settings and what goes into them, phase by phase; the broker is restarted
between phases so that leader epochs grow. Must not know how Kafka is started or where files lie.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
)

from storage.checkpoint import CLEANER_CHECKPOINT, read_offsets
from storage.files import Files
from tests.fidelity.clients import (
    TIMEOUT_SECONDS,
    Rdkafka,
    create_topics,
    send_with_kafka_python,
)
from tests.fidelity.samples import FIRST_TIMESTAMP, Sample, Samples

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
LEGACY_CODECS: Final = ("none", "gzip", "snappy", "lz4")
LEGACY_FORMATS: Final = {0: "0.9.0", 1: "0.10.2"}
_LEGACY_CLIENTS: Final = {0: (0, 9), 1: (0, 10)}

SMALL: Final = {"segment.bytes": "6000", "index.interval.bytes": "400"}
COMPACTED: Final = {
    "segment.bytes": "1500",
    "index.interval.bytes": "200",
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "file.delete.delay.ms": "0",
}
PURGED: Final = {**COMPACTED, "delete.retention.ms": "0"}
COMPACTED_TOPICS: Final = ("compacted", "purged", "compacted-txn")

_TXN_TIMEOUT_MS: Final = 900_000
_QUIET: Final = {"log_level": 0}


class Workload:
    """Writes to one broker; `supports_old_formats` where message.format.version has an effect."""

    def __init__(self, *, supports_old_formats: bool) -> None:
        self.magics = tuple(LEGACY_FORMATS) if supports_old_formats else ()
        self.compacted_topics = list(COMPACTED_TOPICS)
        self.compacted_topics += [f"compacted-v{magic}" for magic in self.magics]
        self._open: list[Rdkafka] = []

    def topics(self) -> dict[str, Mapping[str, str]]:
        configs: dict[str, Mapping[str, str]] = {}
        for codec in CODECS:
            name = "uncompressed" if codec == "none" else codec
            configs[f"sent-{codec}"] = SMALL
            configs[f"stored-{codec}"] = {**SMALL, "compression.type": name}
        configs["append-time"] = {**SMALL, "message.timestamp.type": "LogAppendTime"}
        configs["idempotent"] = SMALL
        configs["transactional"] = SMALL
        configs["deleted-records"] = SMALL
        configs["compacted"] = COMPACTED
        configs["purged"] = PURGED
        configs["compacted-txn"] = PURGED
        for magic in self.magics:
            version = {"message.format.version": LEGACY_FORMATS[magic]}
            for codec in LEGACY_CODECS:
                configs[f"v{magic}-{codec}"] = {**SMALL, **version}
            configs[f"compacted-v{magic}"] = {**PURGED, **version}
        if self.magics:
            configs["v1-append-time"] = {
                **SMALL,
                "message.format.version": LEGACY_FORMATS[1],
                "message.timestamp.type": "LogAppendTime",
            }
            configs["upgraded"] = {**SMALL, "message.format.version": LEGACY_FORMATS[0]}
        return configs

    # Phases

    def first_phase(self, bootstrap: str) -> None:
        create_topics(bootstrap, self.topics())
        self._write_plain(bootstrap, "first")
        self._write_legacy(bootstrap)
        self._write_idempotent(bootstrap, "first")
        self._write_transactions(bootstrap, "first")
        self._write_compacted(bootstrap, "first")

    def second_phase(self, bootstrap: str) -> None:
        self._write_plain(bootstrap, "second")
        self._upgrade(bootstrap)
        self._write_idempotent(bootstrap, "second")
        self._write_transactions(bootstrap, "second")
        self._write_compacted(bootstrap, "second")
        self._delete_records(bootstrap)
        self._commit_offsets(bootstrap)
        self._commit_offsets_in_transaction(bootstrap)

    def leave_transaction_open(self, bootstrap: str) -> None:
        """The broker must be stopped before the returned producer's transaction times out."""
        producer = _transactional(bootstrap, "left-open")
        producer.producer.begin_transaction()
        producer.send("transactional", Samples("open").take(3))
        producer.send("transactional", Samples("open more").take(2))
        settled = _transactional(bootstrap, "settled")
        for number in range(2):
            settled.producer.begin_transaction()
            settled.send("transactional", Samples(f"after open {number}").take(3))
            _end(settled, commits=number == 0)
        self._open.append(producer)

    # What goes into the topics

    def _write_plain(self, bootstrap: str, phase: str) -> None:
        for codec in CODECS:
            producer = Rdkafka(bootstrap, compression_type=codec)
            uncompressed = Rdkafka(bootstrap, compression_type="none" if codec != "none" else "lz4")
            for batch in Samples(f"{phase} {codec}").batches(12):
                producer.send(f"sent-{codec}", batch)
            send_with_kafka_python(
                bootstrap,
                f"sent-{codec}",
                Samples(f"{phase} {codec} kafka-python").batches(4),
                codec=None if codec == "none" else codec,
            )
            for batch in Samples(f"{phase} {codec} stored").batches(12):
                uncompressed.send(f"stored-{codec}", batch)
        for codec in ("none", "gzip", "lz4"):
            producer = Rdkafka(bootstrap, compression_type=codec)
            for batch in Samples(f"{phase} append time {codec}").batches(5):
                producer.send("append-time", batch)
        producer = Rdkafka(bootstrap)
        for batch in Samples(f"{phase} deleted").batches(12):
            producer.send("deleted-records", batch)

    def _write_legacy(self, bootstrap: str) -> None:
        for magic in self.magics:
            for codec in LEGACY_CODECS:
                self._write_legacy_codec(bootstrap, magic, codec)
        if self.magics:
            _send_without_headers(Rdkafka(bootstrap), "upgraded", "upgraded 0", 4)
            for codec in ("none", "gzip"):
                producer = Rdkafka(bootstrap, compression_type=codec)
                _send_without_headers(producer, "v1-append-time", f"append time {codec}", 8)

    def _write_legacy_codec(self, bootstrap: str, magic: int, codec: str) -> None:
        topic = f"v{magic}-{codec}"
        # Of these the broker makes messages of the older format itself.
        _send_without_headers(Rdkafka(bootstrap, compression_type=codec), topic, topic, 10)
        if (magic, codec) == (0, "lz4"):
            return  # kafka-python cannot write the frames that Kafka 0.9 wrote
        send_with_kafka_python(
            bootstrap,
            topic,
            Samples(f"{topic} kafka-python", with_headers=False).batches(10),
            codec=None if codec == "none" else codec,
            api_version=_LEGACY_CLIENTS[magic],
        )

    def _upgrade(self, bootstrap: str) -> None:
        if not self.magics:
            return
        for version, codec in ((LEGACY_FORMATS[1], "gzip"), ("2.5", "snappy")):
            _alter_config(bootstrap, "upgraded", "message.format.version", version)
            producer = Rdkafka(bootstrap, compression_type=codec)
            _send_without_headers(producer, "upgraded", f"upgraded {version}", 4)

    def _write_idempotent(self, bootstrap: str, phase: str) -> None:
        producers = [Rdkafka(bootstrap, enable_idempotence=True) for _ in range(3)]
        now = int(time.time() * 1000)  # a broker forgets producers who are idle for a week
        for number, producer in enumerate(producers):
            samples = Samples(f"{phase} idempotent {number}", first_timestamp=now)
            for batch in samples.batches(3 + 3 * number, 3):
                producer.send("idempotent", batch)
        samples = Samples(f"{phase} idempotent all", first_timestamp=now)
        for number, batch in enumerate(samples.batches(9, 3)):
            producers[number % 3].send("idempotent", batch)

    def _write_transactions(self, bootstrap: str, phase: str) -> None:
        one, other = (_transactional(bootstrap, name) for name in ("one", "other"))
        samples = Samples(f"{phase} transactions", always_keyed=True)
        for topic in ("transactional", "compacted-txn"):
            for number in range(6):
                one.producer.begin_transaction()
                one.send(topic, samples.take(2))
                other.producer.begin_transaction()
                other.send(topic, samples.take(3))
                one.send(topic, samples.take(1))
                _end(one, commits=number % 3 != 1)
                other.send(topic, samples.take(2))
                _end(other, commits=number % 2 == 0)

    def _write_compacted(self, bootstrap: str, phase: str) -> None:
        for topic in self.compacted_topics:
            codec = "none" if topic in COMPACTED_TOPICS else "gzip"
            producer = Rdkafka(bootstrap, compression_type=codec)
            samples = Samples(
                f"{phase} {topic}", with_headers=topic in COMPACTED_TOPICS, always_keyed=True
            )
            producer.send(topic, [Sample(FIRST_TIMESTAMP, b"only in %s" % phase.encode(), b"x")])
            if topic in COMPACTED_TOPICS:
                # All its records are superseded below; the batch remains, for its sequence.
                Rdkafka(bootstrap, enable_idempotence=True).send(
                    topic, [Sample(FIRST_TIMESTAMP, b"key-%d" % n, b"old") for n in range(3)]
                )
            for batch in samples.batches(12):
                producer.send(topic, batch)
            producer.send(topic, [Sample(FIRST_TIMESTAMP, b"key-%d" % n, None) for n in range(5)])
            for batch in samples.batches(6):
                producer.send(topic, [s for s in batch if s.key not in (b"key-0", b"key-1")])

    def _delete_records(self, bootstrap: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
        wanted = TopicPartition("deleted-records", 0, 21)
        for result in admin.delete_records([wanted]).values():
            result.result(TIMEOUT_SECONDS)

    # Consumer groups

    def _commit_offsets(self, bootstrap: str) -> None:
        for group in ("readers", "leavers"):
            consumer = _group_member(bootstrap, group)
            try:
                consumer.subscribe(["sent-none", "sent-zstd"])
                _poll_until_assigned(consumer)
                for number in range(6):
                    positions = [
                        TopicPartition("sent-none", 0, number, f"note {number}"),
                        TopicPartition("sent-zstd", 0, number * 2),
                    ]
                    consumer.commit(offsets=positions, asynchronous=False)
            finally:
                consumer.close()
        admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
        for result in admin.delete_consumer_groups(["leavers"]).values():
            result.result(TIMEOUT_SECONDS)

    def _commit_offsets_in_transaction(self, bootstrap: str) -> None:
        consumer = _group_member(bootstrap, "exactly-once")
        producer = _transactional(bootstrap, "exactly-once")
        try:
            consumer.subscribe(["sent-gzip"])
            _poll_until_assigned(consumer)
            for number in range(4):
                producer.producer.begin_transaction()
                producer.send("transactional", Samples(f"exactly once {number}").take(1))
                producer.producer.send_offsets_to_transaction(
                    [TopicPartition("sent-gzip", 0, 5 + number)],
                    consumer.consumer_group_metadata(),
                )
                _end(producer, commits=number != 2)
        finally:
            consumer.close()


def wait_until_cleaned(data: Path, topics: list[str]) -> None:
    """Return when the cleaner has been over all but the active segments of the topics."""
    deadline = time.monotonic() + 60
    while True:
        cleaned = read_offsets(Files(), data / CLEANER_CHECKPOINT)
        if all(cleaned.get((t, 0), -1) >= _active_base(data / f"{t}-0") for t in topics):
            return
        assert time.monotonic() < deadline, f"not cleaned in time: {cleaned}"
        time.sleep(0.1)


def _active_base(partition: Path) -> int:
    return max(int(path.stem) for path in partition.glob("*.log"))


def _send_without_headers(producer: Rdkafka, topic: str, seed: str, count: int) -> None:
    for batch in Samples(seed, with_headers=False).batches(count):
        producer.send(topic, batch)


def _transactional(bootstrap: str, name: str) -> Rdkafka:
    producer = Rdkafka(
        bootstrap, transactional_id=f"txn-{name}", transaction_timeout_ms=_TXN_TIMEOUT_MS
    )
    producer.producer.init_transactions(TIMEOUT_SECONDS)
    return producer


def _end(producer: Rdkafka, *, commits: bool) -> None:
    if commits:
        producer.producer.commit_transaction(TIMEOUT_SECONDS)
    else:
        producer.producer.abort_transaction(TIMEOUT_SECONDS)


def _group_member(bootstrap: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **_QUIET,
        }
    )


def _poll_until_assigned(consumer: Consumer) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not consumer.assignment():
        assert time.monotonic() < deadline, "the group gives no partitions"
        consumer.poll(0.1)


def _alter_config(bootstrap: str, topic: str, name: str, value: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, **_QUIET})
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for result in admin.incremental_alter_configs([resource]).values():
        result.result(TIMEOUT_SECONDS)
