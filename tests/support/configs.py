"""Requests about configuration in any version, for tests that ask a real broker."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence

from controller.zookeeper import ZooKeeperClient
from network.protocol import ErrorCode
from network.protocol.messages import alter_configs as alter
from network.protocol.messages import incremental_alter_configs as incremental
from network.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
)
from tests.support.raw_client import RawClient

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)
WAIT_SECONDS = 20.0

Entries = dict[str, DescribeConfigsResourceResult]
Verdict = tuple[int, str | None]


def ask(
    client: RawClient,
    kind: int,
    name: str,
    keys: Sequence[str] | None = None,
    *,
    version: int = 2,
    synonyms: bool = False,
) -> DescribeConfigsResult:
    wanted = DescribeConfigsResource(
        resource_type=kind,
        resource_name=name,
        configuration_keys=None if keys is None else list(keys),
    )
    request = DescribeConfigsRequest(resources=[wanted], include_synonyms=synonyms)
    result: DescribeConfigsResult = client.ask(request, version).results[0]
    return result


def entries(client: RawClient, kind: int, name: str, *keys: str, version: int = 2) -> Entries:
    """What a resource's settings are, by name, with their synonyms."""
    result = ask(client, kind, name, keys or None, version=version, synonyms=version > 0)
    assert result.error_code == ErrorCode.NONE, result
    return {one.name: one for one in result.configs}


def replace(
    client: RawClient,
    kind: int,
    name: str,
    settings: Mapping[str, str | None],
    *,
    version: int = 1,
    validate_only: bool = False,
) -> Verdict:
    resource = alter.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[alter.AlterableConfig(name=key, value=text) for key, text in settings.items()],
    )
    request = alter.AlterConfigsRequest(resources=[resource], validate_only=validate_only)
    answer = client.ask(request, version).responses[0]
    return answer.error_code, answer.error_message


def change(
    client: RawClient,
    kind: int,
    name: str,
    *changes: tuple[str, int, str | None],
    version: int = 1,
    validate_only: bool = False,
) -> Verdict:
    resource = incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=[
            incremental.AlterableConfig(name=key, config_operation=operation, value=text)
            for key, operation, text in changes
        ],
    )
    request = incremental.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )
    answer = client.ask(request, version).responses[0]
    return answer.error_code, answer.error_message


def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a change to have come by way of ZooKeeper."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the change has not come"
        time.sleep(0.01)


def read_znode(connect: str, path: str) -> bytes:
    async def read() -> bytes:
        client = ZooKeeperClient(connect)
        await client.connect()
        try:
            return (await client.get(path)).data
        finally:
            await client.close()

    return asyncio.run(read())
