"""Notices of changes, on a real ZooKeeper."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping

from broker.configs.change_listener import NOTICE_LIFE_MS, ChangeListener
from controller import znodes
from controller.metadata_store import MetadataStore
from controller.zookeeper import ZooKeeperClient
from tests.support.zookeeper import BreakableConnection

Heard = list[tuple[str, str, Mapping[str, str]]]


class Scene:
    """A store, a listener that remembers what it was told, and a clock that stands still."""

    def __init__(self, client: ZooKeeperClient) -> None:
        self.client = client
        self.store = MetadataStore(client)
        self.heard: Heard = []
        self.now_ms = 0
        self.listener = self.new_listener()

    def new_listener(self) -> ChangeListener:
        return ChangeListener(
            self.store,
            {kind: self._remember(kind) for kind in znodes.CONFIG_KINDS},
            lambda: self.now_ms,
        )

    def _remember(self, kind: str) -> Callable[[str, Mapping[str, str]], None]:
        return lambda name, settings: self.heard.append((kind, name, settings))

    async def until_heard(self, count: int) -> Heard:
        async with asyncio.timeout(20):
            while len(self.heard) < count:
                await asyncio.sleep(0.005)
        return self.heard

    async def notices(self) -> list[str]:
        return sorted(await self.client.children(znodes.CONFIG_CHANGES))


def run(connect: str, test: Callable[[Scene], Awaitable[None]]) -> None:
    async def live() -> None:
        client = ZooKeeperClient(connect)
        await client.connect()
        scene = Scene(client)
        await scene.store.create_top_level_paths()
        try:
            await test(scene)
        finally:
            await scene.listener.stop()
            await client.close()

    asyncio.run(live())


def test_what_is_there_is_told_at_the_start_and_what_changes_later(zookeeper_connect: str) -> None:
    async def test(scene: Scene) -> None:
        quota = {"producer_byte_rate": "1"}
        for kind, name in (
            ("clients", "c"),
            ("users", "<default>"),
            ("users", "k"),
            ("users", "k/clients/c"),
            ("brokers", "<default>"),
        ):
            await scene.store.set_config(kind, name, quota)
        await scene.listener.start()
        assert sorted((kind, name) for kind, name, _ in scene.heard) == [
            ("brokers", "<default>"),
            ("clients", "c"),
            ("users", "<default>"),
            ("users", "k"),
            ("users", "k/clients/c"),
        ]
        scene.heard.clear()
        await scene.store.change_config("topics", "t", {"flush.ms": "1"})
        await scene.store.change_config("users", "k/clients/c", {})
        assert await scene.until_heard(2) == [
            ("topics", "t", {"flush.ms": "1"}),
            ("users", "k/clients/c", {}),
        ]

    run(zookeeper_connect, test)


def test_notices_from_before_the_start_are_read_once(zookeeper_connect: str) -> None:
    async def test(scene: Scene) -> None:
        await scene.store.change_config("topics", "t", {"flush.ms": "1"})
        await scene.listener.start()
        assert scene.heard == [("topics", "t", {"flush.ms": "1"})]
        await scene.store.change_config("topics", "u", {})
        assert (await scene.until_heard(2))[1:] == [("topics", "u", {})]

    run(zookeeper_connect, test)


def test_old_notices_are_purged_when_a_new_one_comes(zookeeper_connect: str) -> None:
    async def test(scene: Scene) -> None:
        await scene.listener.start()
        await scene.store.change_config("topics", "t", {})
        await scene.until_heard(1)
        (first,) = await scene.notices()
        created = (await scene.client.exists(f"{znodes.CONFIG_CHANGES}/{first}")).created_ms  # type: ignore[union-attr]
        scene.now_ms = created + NOTICE_LIFE_MS
        await scene.store.change_config("topics", "t", {})
        await scene.until_heard(2)
        assert first in await scene.notices()
        scene.now_ms = created + NOTICE_LIFE_MS + 60_000
        await scene.store.change_config("topics", "t", {})
        async with asyncio.timeout(20):
            while await scene.notices():
                await asyncio.sleep(0.005)

    run(zookeeper_connect, test)


def test_both_forms_of_a_notice_are_understood_and_nonsense_is_passed_over(
    zookeeper_connect: str,
) -> None:
    async def test(scene: Scene) -> None:
        await scene.listener.start()
        await scene.store.set_config("clients", "c", {"producer_byte_rate": "1"})
        await scene.store.set_config("topics", "t", {"flush.ms": "1"})
        for data in (
            b"",
            b"no json",
            b"[]",
            b'{"version":3,"entity_path":"topics/t"}',
            b'{"version":2,"entity_path":"planets/t"}',
            b'{"version":2}',
            b'{"version":1,"entity_type":"brokers","entity_name":"0"}',
            b'{"version":1,"entity_type":"clients","entity_name":"c"}',
            json.dumps({"version": 2, "entity_path": "topics/t"}).encode(),
        ):
            await scene.client.create(znodes.CONFIG_CHANGE_PREFIX, data, sequential=True)
        assert await scene.until_heard(2) == [
            ("clients", "c", {"producer_byte_rate": "1"}),
            ("topics", "t", {"flush.ms": "1"}),
        ]

    run(zookeeper_connect, test)


def test_changes_made_while_zookeeper_was_away_are_heard_afterwards(zookeeper_connect: str) -> None:
    async def live() -> None:
        async with BreakableConnection(zookeeper_connect) as way:
            other, client = ZooKeeperClient(zookeeper_connect), ZooKeeperClient(way.connect_string)
            await other.connect()
            await client.connect()
            scene = Scene(client)
            await scene.store.create_top_level_paths()
            await scene.listener.start()
            way.cut()
            await MetadataStore(other).change_config("topics", "t", {"flush.ms": "1"})
            way.mend()
            assert await scene.until_heard(1) == [("topics", "t", {"flush.ms": "1"})]
            await scene.listener.stop()
            await client.close()
            await other.close()

    asyncio.run(live())
