"""AlterConfigs: all settings of a resource, replaced at once.

0  resources with their settings; validate only
1  throttled after the response
"""

from broker.configs.admin import Resource, ResourceType
from broker.dispatch import RequestContext, handles
from broker.failures import verdict
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def _error(
    request: AlterConfigsRequest, code: ErrorCode, message: str | None = None
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        responses=[_result(wanted, code, message) for wanted in request.resources]
    )


@handles(ApiKey.ALTER_CONFIGS, versions=(0, 1), on_error=_error)
async def alter_configs(
    services: Services, _context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    for wanted in request.resources:
        kind = ResourceType(wanted.resource_type)
        if kind not in (ResourceType.TOPIC, ResourceType.BROKER):
            message = f"Unexpected resource type {kind.name}"
            return _error(request, ErrorCode.INVALID_REQUEST, message)
    return AlterConfigsResponse(
        responses=[
            await _alter(services, wanted, request.validate_only) for wanted in request.resources
        ]
    )


async def _alter(
    services: Services, wanted: AlterConfigsResource, validate_only: bool
) -> AlterConfigsResourceResponse:
    resource = Resource(ResourceType(wanted.resource_type), wanted.resource_name)
    settings = {one.name: one.value for one in wanted.configs}
    work = services.configs.alter(resource, settings, validate_only=validate_only)
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
