"""DescribeClientQuotas (48): quotas that match a filter."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    float64,
    int8,
    int16,
    int32,
    string,
)


class ComponentData(Struct):
    entity_type: str = string()
    match_type: int = int8()
    match: str | None = string(null="0+")


class DescribeClientQuotasRequest(
    Request, api=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    components: list[ComponentData] = array(ComponentData)
    strict: bool = boolean()


class EntityData(Struct):
    entity_type: str = string()
    entity_name: str | None = string(null="0+")


class ValueData(Struct):
    key: str = string()
    value: float = float64()


class EntryData(Struct):
    entity: list[EntityData] = array(EntityData)
    values: list[ValueData] = array(ValueData)


class DescribeClientQuotasResponse(
    Response, api=ApiKey.DESCRIBE_CLIENT_QUOTAS, versions="0-1", flexible="1+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    entries: list[EntryData] | None = array(EntryData, null="0+")
