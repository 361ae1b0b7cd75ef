"""A way to a broker that loses answers: requests are carried out, but the client never hears of it.

Every so many produce responses, one is swallowed and its connection cut, as a broker that dies
between append and answer would do; `on_loss` may then kill a real one.
"""

import contextlib
import socket
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from network.protocol import ApiKey

_SIZE: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">hhi")  # api key, version, correlation id


class LossyProxy:
    """Forwards a loopback port to wherever `target` says; loses every nth produce response."""

    def __init__(
        self,
        target: Callable[[], int],
        lose_every: int,
        losses: int,
        on_loss: Callable[[int], None] | None = None,
    ) -> None:
        self._target = target
        self._lose_every = lose_every
        self._losses_left = losses
        self._on_loss = on_loss
        self._produced = 0
        self._lock = threading.Lock()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._open: set[socket.socket] = set()
        self.lost = 0
        self.port: int = self._server.getsockname()[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for one in list(self._open):
            _close(one)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            broker = socket.create_connection(("127.0.0.1", self._target()), 5)
        except OSError:
            _close(client)
            return
        broker.settimeout(None)
        self._open |= {client, broker}
        produces: set[int] = set()
        forward = threading.Thread(
            target=self._pass_requests, args=(client, broker, produces), daemon=True
        )
        forward.start()
        with contextlib.suppress(OSError):
            while (frame := _read_frame(broker)) is not None:
                (correlation,) = _SIZE.unpack_from(frame, 4)
                if correlation in produces and self._loses_this_one():
                    break
                client.sendall(frame)
        _close(client)
        _close(broker)

    def _pass_requests(
        self, client: socket.socket, broker: socket.socket, produces: set[int]
    ) -> None:
        with contextlib.suppress(OSError):
            while (frame := _read_frame(client)) is not None:
                api_key, _, correlation = _HEAD.unpack_from(frame, 4)
                if api_key == ApiKey.PRODUCE:
                    produces.add(correlation)
                broker.sendall(frame)
        _close(broker)

    def _loses_this_one(self) -> bool:
        with self._lock:
            self._produced += 1
            if self._losses_left == 0 or self._produced % self._lose_every:
                return False
            self._losses_left -= 1
            self.lost += 1
            if self._on_loss is not None:
                self._on_loss(self.lost)
            return True


def _read_frame(source: socket.socket) -> bytes | None:
    """Size and payload of the next frame; None at the end of the connection."""
    head = _read(source, _SIZE.size)
    if head is None:
        return None
    body = _read(source, _SIZE.unpack(head)[0])
    return None if body is None else head + body


def _read(source: socket.socket, count: int) -> bytes | None:
    data = bytearray()
    while len(data) < count:
        part = source.recv(count - len(data))
        if not part:
            return None
        data += part
    return bytes(data)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
