"""FindCoordinator (10): which broker coordinates a group or a transactional id."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Request, api=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


class Coordinator(Struct):
    key: str = string("4+")
    node_id: int = int32("4+")
    host: str = string("4+")
    port: int = int32("4+")
    error_code: int = int16("4+")
    error_message: str | None = string("4+", null="4+", ignorable=True)


class FindCoordinatorResponse(Response, api=ApiKey.FIND_COORDINATOR, versions="0-6", flexible="3+"):
    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", null="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")
