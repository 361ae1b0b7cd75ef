"""ApiVersions: which APIs are served in which versions.

0  the table
1  throttle time
2  throttled after the response
3  flexible; the client's software name and version, which must be well-formed
"""

import re

from broker.dispatch import RequestContext, handles, served_versions
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

SOFTWARE_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
FIRST_VERSION_WITH_SOFTWARE_NAME = 3


def _error(_request: ApiVersionsRequest, code: ErrorCode) -> ApiVersionsResponse:
    return ApiVersionsResponse(error_code=code)


@handles(ApiKey.API_VERSIONS, versions=(0, 3), on_error=_error)
def api_versions(
    _services: Services, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    if context.api_version >= FIRST_VERSION_WITH_SOFTWARE_NAME and not _is_well_formed(request):
        return _error(request, ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=served_versions())


def _is_well_formed(request: ApiVersionsRequest) -> bool:
    names = (request.client_software_name, request.client_software_version)
    return all(SOFTWARE_NAME.fullmatch(name) for name in names)
