"""AlterClientQuotas (49): quotas set or removed."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    float64,
    int16,
    int32,
    string,
)


class EntityData(Struct):
    entity_type: str = string()
    entity_name: str | None = string(null="0+")


class OpData(Struct):
    key: str = string()
    value: float = float64()
    remove: bool = boolean()


class RequestEntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    ops: list[OpData] = array(OpData)


class AlterClientQuotasRequest(
    Request, api=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    entries: list[RequestEntryData] = array(RequestEntryData)
    validate_only: bool = boolean()


class ResponseEntryData(Struct):
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    entity: list[EntityData] = array(EntityData)


class AlterClientQuotasResponse(
    Response, api=ApiKey.ALTER_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    throttle_time_ms: int = int32()
    entries: list[ResponseEntryData] = array(ResponseEntryData)
