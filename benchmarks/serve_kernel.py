"""The kernel's own share of a produce: what receives, checksums and writes the same bytes costs.

A process of its own does nothing else, so that its CPU time is that share.
"""

import os
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from crc32c import crc32c

from benchmarks.serve_servers import cpu_seconds

CHUNK_BYTES = 1 << 20
GIGABYTE = 1e9


def kernel_cost(directory: Path, size: int) -> float:
    """CPU seconds per GB of receiving, checksumming and writing, and nothing else."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, "-m", "benchmarks.serve_kernel", str(directory)]
        child = subprocess.Popen([*command, str(listener.fileno())], pass_fds=[listener.fileno()])
        try:
            with socket.create_connection(("127.0.0.1", port)) as sender:
                chunk = os.urandom(CHUNK_BYTES)
                sender.sendall(chunk)
                sender.recv(1)
                before = cpu_seconds(child.pid)
                for _ in range(size // CHUNK_BYTES):
                    sender.sendall(chunk)
                    sender.recv(1)
                used = cpu_seconds(child.pid) - before
        finally:
            child.kill()
            child.wait()
            with suppress(FileNotFoundError):
                (directory / "baseline").unlink()
    return used / size * GIGABYTE


def main() -> None:
    directory, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    connection, _ = socket.socket(fileno=descriptor).accept()
    buffer = memoryview(bytearray(CHUNK_BYTES))
    with connection, (directory / "baseline").open("wb", buffering=0) as file:
        while True:
            filled = 0
            while filled < CHUNK_BYTES:
                count = connection.recv_into(buffer[filled:])
                if not count:
                    return
                filled += count
            crc32c(buffer)
            file.write(buffer)
            connection.send(b"k")


if __name__ == "__main__":
    main()
