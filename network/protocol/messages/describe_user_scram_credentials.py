"""DescribeUserScramCredentials (50): which SCRAM credentials users have."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int8, int16, int32, string


class UserName(Struct):
    name: str = string()


class DescribeUserScramCredentialsRequest(
    Request, api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    users: list[UserName] | None = array(UserName, null="0+")


class CredentialInfo(Struct):
    mechanism: int = int8()
    iterations: int = int32()


class DescribeUserScramCredentialsResult(Struct):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    credential_infos: list[CredentialInfo] = array(CredentialInfo)


class DescribeUserScramCredentialsResponse(
    Response, api=ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(null="0+")
    results: list[DescribeUserScramCredentialsResult] = array(DescribeUserScramCredentialsResult)
