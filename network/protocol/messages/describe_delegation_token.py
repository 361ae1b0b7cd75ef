"""DescribeDelegationToken (41): the tokens of owners."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    int16,
    int32,
    int64,
    string,
)


class DescribeDelegationTokenOwner(Struct):
    principal_type: str = string()
    principal_name: str = string()


class DescribeDelegationTokenRequest(
    Request, api=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+"
):
    owners: list[DescribeDelegationTokenOwner] | None = array(
        DescribeDelegationTokenOwner, null="0+"
    )


class DescribedDelegationTokenRenewer(Struct):
    principal_type: str = string()
    principal_name: str = string()


class DescribedDelegationToken(Struct):
    principal_type: str = string()
    principal_name: str = string()
    token_requester_principal_type: str = string("3+")
    token_requester_principal_name: str = string("3+")
    issue_timestamp: int = int64()
    expiry_timestamp: int = int64()
    max_timestamp: int = int64()
    token_id: str = string()
    hmac: bytes = binary()
    renewers: list[DescribedDelegationTokenRenewer] = array(DescribedDelegationTokenRenewer)


class DescribeDelegationTokenResponse(
    Response, api=ApiKey.DESCRIBE_DELEGATION_TOKEN, versions="0-3", flexible="2+"
):
    error_code: int = int16()
    tokens: list[DescribedDelegationToken] = array(DescribedDelegationToken)
    throttle_time_ms: int = int32()
