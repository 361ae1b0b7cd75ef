"""A broker that the tests of one module share, and a Spark that all share."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.broker import BrokerProcess, running_broker
from tests.support.raw_client import RawClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
from tests.support.zookeeper import zookeeper_connect

__all__ = ["zookeeper_connect"]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    data: Path = tmp_path_factory.mktemp("data")
    with running_broker(data, {"num.partitions": "2", "log.segment.bytes": "100000"}) as broker:
        yield broker


@pytest.fixture
def client(broker: BrokerProcess) -> Iterator[RawClient]:
    with RawClient(broker.port) as client:
        yield client


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """One Spark for all tests: its start is most of what they take."""
    from tests.support.spark import running_spark

    with running_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
