"""Configuration beside Apache Kafka 2.5.1's: what it answered is kept in tests/fixtures."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from broker.configs.password_encoder import PasswordEncoder
from tests.fidelity.config_scenario import (
    CHANGES,
    FIXTURE,
    PASSWORD,
    QUESTIONS,
    REPLACEMENTS,
    SETTINGS,
    Answers,
    answers,
)
from tests.support.apache_kafka import KafkaBroker, require_apache_kafka
from tests.support.broker import running_broker
from tests.support.configs import BROKER, SET, change, entries, eventually
from tests.support.raw_client import RawClient

CONNECTING = re.compile(r"Connecting to zookeeper on (\S+)")
# These say where this very broker is.
PLACES = {"log.dirs", "zookeeper.connect"}


@pytest.fixture(scope="module")
def kafkas() -> Answers:
    found: Answers = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    return found


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    with running_broker(tmp_path_factory.mktemp("data"), SETTINGS) as broker:
        connect = broker.wait_for_line(CONNECTING).group(1)
        found: Answers = json.loads(json.dumps(answers(broker.port, connect)))
        return found


@pytest.mark.parametrize(
    "what", ["broker", "topic", "changed broker", "defaults", "topic of changed broker"]
)
def test_every_setting_is_described_as_kafka_describes_it(
    kafkas: Answers, ours: Answers, what: str
) -> None:
    """Value, source, synonyms in their order, and whether it is read-only or sensitive."""
    assert set(ours[what]) == set(kafkas[what])
    different = {
        name: (ours[what][name], expected)
        for name, expected in kafkas[what].items()
        if name not in PLACES and ours[what][name] != expected
    }
    assert different == {}


def test_every_wrong_request_gets_the_code_that_kafka_gives(kafkas: Answers, ours: Answers) -> None:
    asked: list[Any] = [*CHANGES, *REPLACEMENTS, *QUESTIONS]
    pairs = zip(asked, ours["verdicts"], kafkas["verdicts"], strict=True)
    different = [(what, our, his) for what, our, his in pairs if our[0] != his[0]]
    assert different == []
    assert ours["first verdicts"] == kafkas["first verdicts"] == [[0, None], [0, None]]


def test_the_znodes_are_kafkas(kafkas: Answers, ours: Answers) -> None:
    found = [without_password(one["znodes"]) for one in (ours, kafkas)]
    assert found[0] == found[1]


def test_a_password_that_kafka_encoded_is_read(kafkas: Answers) -> None:
    encoded = kafkas["znodes"]["brokers/0"]["config"][PASSWORD]
    encoder = PasswordEncoder("secret", None, "AES/CBC/PKCS5Padding", 128, 4096)
    assert encoder.decode(encoded) == "hüsh"


def test_kafka_reads_a_password_that_we_have_encoded(tmp_path: Path) -> None:
    kafka = require_apache_kafka("2.5.1")
    settings = {**SETTINGS, "password.encoder.secret": "ours"}
    with kafka.zookeeper(tmp_path / "zookeeper") as zookeeper:
        ensemble = {"zookeeper.connect": zookeeper.connect}
        with running_broker(tmp_path / "ours", {**settings, **ensemble}) as broker:
            with RawClient(broker.port) as client:
                assert change(client, BROKER, "0", (PASSWORD, SET, "hüsh")) == (0, None)
                eventually(lambda: PASSWORD in entries(client, BROKER, "0"))
            assert broker.stop() == 0
        theirs = KafkaBroker(kafka, tmp_path / "theirs", zookeeper.connect, settings)
        try:
            theirs.start()
            with RawClient(theirs.port) as client:
                found = entries(client, BROKER, "0", PASSWORD)  # it is not there if unreadable
            assert found[PASSWORD].config_source == 2
            assert "could not be decoded" not in theirs.log_text
        finally:
            theirs.kill()


def without_password(znodes: dict[str, Any]) -> dict[str, Any]:
    """The znodes with the names of the password's fields: the values are random."""
    broker = dict(znodes["brokers/0"]["config"])
    fields = sorted(pair.partition(":")[0] for pair in broker.pop(PASSWORD).split(","))
    return {**znodes, "brokers/0": broker, "fields of the password": fields}
