"""The asyncio client against a real ZooKeeper."""

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from controller.zookeeper import (
    BadVersionError,
    Check,
    ConnectError,
    Create,
    Delete,
    MultiError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    Session,
    SessionEvent,
    SessionExpiredError,
    SessionFile,
    SetData,
    ZooKeeperClient,
)
from tests.support.zookeeper import BreakableConnection


@asynccontextmanager
async def connected(connect: str, **options: Any) -> AsyncIterator[ZooKeeperClient]:
    client = ZooKeeperClient(connect, **options)
    await client.connect()
    try:
        yield client
    finally:
        await client.close()


async def expect(events: "asyncio.Queue[SessionEvent]", *expected: SessionEvent) -> None:
    for event in expected:
        assert await asyncio.wait_for(events.get(), 30) is event


def test_nodes_are_created_read_changed_and_deleted(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect) as client:
            assert await client.create("/a", b"1") == "/a"
            node = await client.get("/a")
            assert (node.data, node.stat.version, node.stat.ephemeral_owner) == (b"1", 0, 0)
            assert (await client.set("/a", b"2", 0)).version == 1
            await client.create("/a/b")
            assert await client.children("/a") == ["b"]
            stat_of_b = await client.exists("/a/b")
            assert stat_of_b is not None
            assert stat_of_b.czxid > node.stat.czxid
            await client.delete("/a/b")
            assert await client.exists("/a/b") is None

    asyncio.run(scenario())


def test_errors_are_our_own_and_name_the_path(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect) as client:
            await client.ensure_path("/a/b")
            with pytest.raises(NoNodeError, match="/missing"):
                await client.get("/missing")
            with pytest.raises(NodeExistsError, match="/a"):
                await client.create("/a")
            with pytest.raises(BadVersionError, match="/a"):
                await client.set("/a", b"", 7)
            with pytest.raises(NotEmptyError, match="/a"):
                await client.delete("/a")

    asyncio.run(scenario())


def test_sequential_nodes_are_numbered(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect) as client:
            paths = [await client.create("/change_", b"", sequential=True) for _ in range(2)]
            assert paths == ["/change_0000000000", "/change_0000000001"]

    asyncio.run(scenario())


def test_nested_chroot_is_created(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(f"{zookeeper_connect}/deep/er") as client:
            await client.create("/here", b"x")
        async with connected(zookeeper_connect) as client:
            assert (await client.get("/deep/er/here")).data == b"x"

    asyncio.run(scenario())


def test_transaction_is_all_or_nothing_and_names_its_culprit(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect) as client:
            answers = await client.multi([Create("/a", b""), SetData("/a", b"1", 0)])
            assert answers[0] is None
            assert answers[1] is not None
            assert answers[1].version == 1
            with pytest.raises(MultiError) as refused:
                await client.multi([Create("/b"), Check("/a", 5), Delete("/a")])
            assert refused.value.index == 1
            assert isinstance(refused.value.cause, BadVersionError)
            assert await client.exists("/b") is None
            assert await client.exists("/a") is not None

    asyncio.run(scenario())


def test_requests_are_pipelined_in_order_beyond_the_window(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect, max_in_flight=3) as client:
            await client.create("/n")
            writes = [client.create(f"/n/{number}") for number in range(500)]
            names = client.children("/n")  # sent last, so it sees them all
            assert len(await names) == 500
            await asyncio.gather(*writes)

    asyncio.run(scenario())


def test_watch_fires_on_the_loop_and_is_armed_again_by_reading(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect) as client, connected(zookeeper_connect) as other:
            changes: asyncio.Queue[str] = asyncio.Queue()
            client.watch_node("/node", lambda: changes.put_nowait("node"))
            client.watch_children("/", lambda: changes.put_nowait("children"))
            await client.exists("/node")
            await client.children("/")
            await other.create("/node", b"")
            assert {await changes.get(), await changes.get()} == {"node", "children"}
            await client.get("/node")
            await other.set("/node", b"2")
            assert await changes.get() == "node"
            await other.set("/node", b"3")  # not armed: nobody has read since
            client.unwatch("/node")
            await client.get("/node")
            await other.delete("/node")
            await client.exists("/node")
            assert changes.empty()

    asyncio.run(scenario())


def test_requests_and_watches_survive_a_lost_connection(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with (
            BreakableConnection(zookeeper_connect) as way,
            connected(way.connect_string) as client,
            connected(zookeeper_connect) as other,
        ):
            events: asyncio.Queue[SessionEvent] = asyncio.Queue()
            changes: asyncio.Queue[str] = asyncio.Queue()
            client.on_session_event(events.put_nowait)
            client.watch_children("/", lambda: changes.put_nowait("children"))
            await client.children("/")
            session = client.session_id
            way.cut()
            await expect(events, SessionEvent.SUSPENDED)
            assert not client.is_connected
            writes = [client.create(f"/{number}") for number in range(100)]
            await other.create("/unseen")
            way.mend()
            await expect(events, SessionEvent.RESUMED)
            await asyncio.gather(*writes)
            assert client.session_id == session
            assert await changes.get() == "children"
            assert "unseen" in await client.children("/")

    asyncio.run(scenario())


def test_requests_in_flight_are_sent_again(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with (
            BreakableConnection(zookeeper_connect) as way,
            connected(way.connect_string) as client,
        ):
            reads = [client.children("/") for _ in range(50)]
            way.cut()
            way.mend()
            assert await asyncio.gather(*reads) == [[]] * 50

    asyncio.run(scenario())


def test_expired_session_is_replaced_and_waiting_requests_are_told(zookeeper_connect: str) -> None:
    async def scenario() -> None:
        async with (
            BreakableConnection(zookeeper_connect) as way,
            connected(way.connect_string, session_timeout_ms=600) as client,
            connected(zookeeper_connect) as other,
        ):
            events: asyncio.Queue[SessionEvent] = asyncio.Queue()
            gone = asyncio.Event()
            client.on_session_event(events.put_nowait)
            await client.create("/mine", ephemeral=True)
            first = client.session_id
            other.watch_node("/mine", gone.set)
            await other.exists("/mine")
            way.cut()
            await expect(events, SessionEvent.SUSPENDED)
            waiting = client.exists("/mine")
            await asyncio.wait_for(gone.wait(), 30)
            way.mend()
            await expect(events, SessionEvent.EXPIRED, SessionEvent.ESTABLISHED)
            with pytest.raises(SessionExpiredError):
                await waiting
            assert client.session_id not in (None, first)
            assert await client.exists("/mine") is None

    asyncio.run(scenario())


def test_closing_removes_ephemeral_nodes_and_refuses_further_requests(
    zookeeper_connect: str,
) -> None:
    async def scenario() -> None:
        async with connected(zookeeper_connect) as other:
            async with connected(zookeeper_connect) as client:
                await client.create("/mine", ephemeral=True)
                node = await client.get("/mine")
                assert node.stat.ephemeral_owner == client.session_id
            assert await other.exists("/mine") is None
            with pytest.raises(SessionExpiredError):
                await client.exists("/mine")

    asyncio.run(scenario())


def test_session_of_a_killed_predecessor_is_closed_first(
    zookeeper_connect: str, tmp_path: Path
) -> None:
    async def scenario() -> None:
        async with BreakableConnection(zookeeper_connect) as way:
            session_file = SessionFile(tmp_path / "session")
            killed = ZooKeeperClient(way.connect_string, session_file=session_file)
            await killed.connect()
            await killed.create("/mine", ephemeral=True)
            assert stat.S_IMODE((tmp_path / "session").stat().st_mode) == 0o600
            way.cut()
            async with connected(zookeeper_connect, session_file=session_file) as successor:
                assert await successor.exists("/mine") is None
                assert successor.session_id != killed.session_id
                kept = session_file.load()
                assert kept is not None
                assert kept.id == successor.session_id
            assert session_file.load() is None
            await killed.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("content", ["", "{}", '{"session_id": 17, "password": "00"}'])
def test_useless_session_file_does_not_keep_the_broker_from_starting(
    zookeeper_connect: str, tmp_path: Path, content: str
) -> None:
    async def scenario() -> None:
        (tmp_path / "session").write_text(content)
        session_file = SessionFile(tmp_path / "session")
        async with connected(zookeeper_connect, session_file=session_file) as client:
            assert await client.exists("/") is not None

    asyncio.run(scenario())


def test_ensemble_out_of_reach_is_named_and_the_old_session_kept(tmp_path: Path) -> None:
    async def scenario() -> None:
        session_file = SessionFile(tmp_path / "session")
        session_file.save(Session(5, b"\0" * 16))
        async with BreakableConnection("127.0.0.1:1") as way:
            way.cut()
            client = ZooKeeperClient(
                way.connect_string, connection_timeout_ms=200, session_file=session_file
            )
            with pytest.raises(ConnectError, match=rf"127.0.0.1:{way.port} within 200 ms"):
                await client.connect()
        assert session_file.load() == Session(5, b"\0" * 16)

    asyncio.run(scenario())
