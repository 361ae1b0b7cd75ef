"""The request log: one line per completed request, as Kafka's kafka.request.logger writes it.

At debug level it names the request and its times, at level TRACE (5) also what the request says.
"""

import logging
from typing import TYPE_CHECKING

from network.protocol import ApiKey, ProtocolError, decode_request, decode_request_header

if TYPE_CHECKING:
    from network.request import Request

REQUEST_LOGGER = "network.request"
TRACE = 5

_logger = logging.getLogger(REQUEST_LOGGER)


def is_enabled() -> bool:
    return _logger.isEnabledFor(logging.DEBUG)


def describe(frame: bytearray) -> str:
    """What a frame asks for, in words; it may be anything."""
    view = memoryview(frame)
    try:
        header, position = decode_request_header(view)
        name = ApiKey(header.api_key).name
        text = (
            f"{name} version {header.api_version}, correlation id {header.correlation_id},"
            f" client {header.client_id!r}"
        )
        if _logger.isEnabledFor(TRACE):
            text += f" -- {decode_request(header.api_key, header.api_version, view, position)}"
    except (ProtocolError, ValueError) as error:
        return f"unreadable request ({error})"
    return text


def log_completed(request: "Request", send_began: float, send_ended: float) -> None:
    channel = request.channel
    local_done_at = request.local_done_at or request.responded_at
    _logger.debug(
        "Completed request: %s, %d bytes, response %d bytes from %s;totalTime:%.3f,"
        "requestQueueTime:%.3f,localTime:%.3f,remoteTime:%.3f,throttleTime:%.3f,"
        "responseQueueTime:%.3f,sendTime:%.3f,securityProtocol:%s,listener:%s",
        request.description,
        request.frame_bytes,
        request.response_bytes,
        channel,
        (send_ended - request.received_at) * 1000,
        (request.dequeued_at - request.received_at) * 1000,
        (local_done_at - request.dequeued_at) * 1000,
        (request.responded_at - local_done_at) * 1000,
        request.throttle_seconds * 1000,
        (send_began - request.responded_at) * 1000,
        (send_ended - send_began) * 1000,
        channel.security_protocol,
        channel.listener_name,
    )
