"""UpdateFeatures (57): levels of features for the whole cluster."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    string,
)


class FeatureUpdateKey(Struct):
    feature: str = string()
    max_version_level: int = int16()
    allow_downgrade: bool = boolean("0")
    upgrade_type: int = int8("1+", default=1)


class UpdateFeaturesRequest(Request, api=ApiKey.UPDATE_FEATURES, versions="0-1", flexible="0+"):
    timeout_ms: int = int32(default=60000)
    feature_updates: list[FeatureUpdateKey] = array(FeatureUpdateKey)
    validate_only: bool = boolean("1+")


class UpdatableFeatureResult(Struct):
    feature: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


class UpdateFeaturesResponse(Response, api=ApiKey.UPDATE_FEATURES, versions="0-1", flexible="0+"):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    results: list[UpdatableFeatureResult] = array(UpdatableFeatureResult)
