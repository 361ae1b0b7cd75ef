"""IncrementalAlterConfigs: single settings of a resource, set, removed or extended.

0  resources with operations on their settings; validate only
1  flexible
"""

from broker.configs.admin import Change, Resource, ResourceType
from broker.dispatch import RequestContext, handles
from broker.failures import verdict
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def _error(
    request: IncrementalAlterConfigsRequest, code: ErrorCode, message: str | None = None
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[_result(wanted, code, message) for wanted in request.resources]
    )


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1), on_error=_error)
async def incremental_alter_configs(
    services: Services, _context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    for wanted in request.resources:
        if ResourceType(wanted.resource_type) is ResourceType.UNKNOWN:
            message = f"Unexpected resource type {wanted.resource_type}"
            return _error(request, ErrorCode.INVALID_REQUEST, message)
    return IncrementalAlterConfigsResponse(
        responses=[
            await _alter(services, wanted, request.validate_only) for wanted in request.resources
        ]
    )


async def _alter(
    services: Services, wanted: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    resource = Resource(ResourceType(wanted.resource_type), wanted.resource_name)
    changes = [Change(one.name, one.config_operation, one.value) for one in wanted.configs]
    work = services.configs.incremental_alter(resource, changes, validate_only=validate_only)
    return _result(wanted, *await verdict(work))


def _result(
    wanted: AlterConfigsResource, code: ErrorCode, message: str | None = None
) -> AlterConfigsResourceResponse:
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
    )
