"""AlterUserScramCredentials (51): SCRAM credentials set or removed."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    binary,
    int8,
    int16,
    int32,
    string,
)


class ScramCredentialDeletion(Struct):
    name: str = string()
    mechanism: int = int8()


class ScramCredentialUpsertion(Struct):
    name: str = string()
    mechanism: int = int8()
    iterations: int = int32()
    salt: bytes = binary()
    salted_password: bytes = binary()


class AlterUserScramCredentialsRequest(
    Request, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    user: str = string()
    error_code: int = int16()
    error_message: str | None = string(null="0+")


class AlterUserScramCredentialsResponse(
    Response, api=ApiKey.ALTER_USER_SCRAM_CREDENTIALS, versions="0", flexible="0+"
):
    throttle_time_ms: int = int32()
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
