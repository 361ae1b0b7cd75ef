"""The other end of the throughput benchmark's baseline: receives, checksums, writes, answers."""

import socket
import sys
from pathlib import Path

from crc32c import crc32c

CHUNK_BYTES = 1 << 20


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
