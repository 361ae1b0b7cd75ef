"""From a frame to the handler of its API and back: registry, version check, last-resort errors.

A handler module says with `@handles` which API it serves in which versions; that one statement
drives dispatch, the version check and what ApiVersions advertises. A handler is a plain function:

- it returns its response message: answered in the same turn of the loop;
- it returns what the purgatory handed out, or an answer deferred: no worker waits for it;
- it is `async`: its worker stays with it until it is done.

Three kinds of failure, three fates: an error code goes into the response; a protocol error closes
that one connection; a bug is logged and answered UNKNOWN_SERVER_ERROR.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum
from types import CoroutineType
from typing import Any, TypeAlias

from broker.deferred import Deferred
from broker.purgatory import Parked
from broker.services import Services
from network.protocol import (
    ApiKey,
    ErrorCode,
    ProtocolError,
    RequestHeader,
    decode_request,
    decode_request_header,
    encode_response,
)
from network.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from network.protocol.schema import Response
from network.request import Request

logger = logging.getLogger(__name__)


class Verdict(Enum):
    """What a handler says instead of a response."""

    NO_RESPONSE = "the client expects none"
    CLOSE_CONNECTION = "the only way to tell this client of an error"


@dataclass(slots=True)
class RequestContext:
    """What a handler may want to know of a request beside its message."""

    header: RequestHeader
    request: Request

    @property
    def api_version(self) -> int:
        return self.header.api_version

    @property
    def client_id(self) -> str:
        return self.header.client_id or ""

    @property
    def listener_name(self) -> str:
        return self.request.channel.listener_name


Outcome: TypeAlias = Any
HandlerFunction: TypeAlias = Callable[[Services, RequestContext, Any], Outcome]
ErrorResponse: TypeAlias = Callable[[Any, ErrorCode], Any]


@dataclass(frozen=True, slots=True)
class ApiHandler:
    """An API that this broker serves."""

    api_key: ApiKey
    min_version: int
    max_version: int
    function: HandlerFunction
    error_response: ErrorResponse
    is_patient: bool


REGISTRY: dict[int, ApiHandler] = {}


def handles(
    api_key: ApiKey,
    *,
    versions: tuple[int, int],
    on_error: ErrorResponse,
    is_patient: bool = False,
) -> Callable[[HandlerFunction], HandlerFunction]:
    """Register a handler; `on_error` makes the response that carries one code for everything.

    Patient requests let others go first, since they come in crowds and cost more.
    """

    def register(function: HandlerFunction) -> HandlerFunction:
        assert api_key not in REGISTRY, f"{api_key.name} is handled twice"
        REGISTRY[api_key] = ApiHandler(api_key, *versions, function, on_error, is_patient)
        return function

    return register


def served_versions() -> list[ApiVersion]:
    """What ApiVersions advertises: exactly what is registered."""
    return [
        ApiVersion(api_key=key, min_version=one.min_version, max_version=one.max_version)
        for key, one in sorted(REGISTRY.items())
    ]


def patient_apis() -> frozenset[int]:
    return frozenset(key for key, one in REGISTRY.items() if one.is_patient)


class Dispatcher:
    """The callable that the socket server hands every request to."""

    def __init__(self) -> None:
        self._services: Services | None = None

    def serve(self, services: Services) -> None:
        """From now on requests can be handled; the socket server must not start before."""
        self._services = services

    def __call__(self, request: Request) -> Awaitable[None] | None:
        frame = memoryview(request.frame)
        try:
            header, position = decode_request_header(frame)
            version = header.api_version
            handler = REGISTRY.get(header.api_key)
            if handler is None or not handler.min_version <= version <= handler.max_version:
                _refuse(request, header)
                return None
            message = decode_request(header.api_key, version, frame, position)
        except ProtocolError as error:
            logger.warning("Closing %s: %s", request.channel, error)
            request.close_connection()
            return None
        context = RequestContext(header, request)
        try:
            assert self._services is not None
            outcome = handler.function(self._services, context, message)
        except Exception:
            outcome = _bug(handler, context, message)
        if isinstance(outcome, Response):
            # By far the most frequent, and the only one in which each microsecond counts.
            request.respond(
                encode_response(header.api_key, version, header.correlation_id, outcome)
            )
            return None
        if isinstance(outcome, CoroutineType):
            return _finish(handler, context, message, outcome)
        _settle(handler, context, message, outcome)
        return None


def _refuse(request: Request, header: RequestHeader) -> None:
    """An unserved API or version; only ApiVersions has an answer that any client can read."""
    if header.api_key != ApiKey.API_VERSIONS:
        logger.warning(
            "Closing %s: API key %d version %d is not served (client %r)",
            request.channel,
            header.api_key,
            header.api_version,
            header.client_id,
        )
        request.close_connection()
        return
    versions = [one for one in served_versions() if one.api_key == ApiKey.API_VERSIONS]
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=versions)
    request.respond(encode_response(header.api_key, 0, header.correlation_id, response))


async def _finish(
    handler: ApiHandler, context: RequestContext, message: Any, work: Awaitable[Outcome]
) -> None:
    try:
        outcome = await work
    except Exception:
        outcome = _bug(handler, context, message)
    _settle(handler, context, message, outcome)


def _settle(handler: ApiHandler, context: RequestContext, message: Any, outcome: Outcome) -> None:
    """Answer now, or when what was parked is done."""
    if not isinstance(outcome, Parked | Deferred):
        _answer(context, outcome)
        return

    def unpark(parked: Parked[Any] | Deferred[Any]) -> None:
        try:
            result = parked.result()
        except Exception:
            result = _bug(handler, context, message)
        _answer(context, result)

    context.request.on_abandoned = outcome.cancel
    outcome.when_done(unpark)


def _answer(context: RequestContext, outcome: Outcome) -> None:
    if outcome is Verdict.NO_RESPONSE:
        context.request.respond(())
    elif outcome is Verdict.CLOSE_CONNECTION:
        context.request.close_connection()
    else:
        header = context.header
        context.request.respond(
            encode_response(header.api_key, header.api_version, header.correlation_id, outcome)
        )


def _bug(handler: ApiHandler, context: RequestContext, message: Any) -> Outcome:
    header = context.header
    logger.exception(
        "Bug in %s version %d, correlation id %d, client %r",
        handler.api_key.name,
        header.api_version,
        header.correlation_id,
        header.client_id,
    )
    return handler.error_response(message, ErrorCode.UNKNOWN_SERVER_ERROR)
