"""DescribeConfigs: settings of topics, brokers and loggers, with where they come from.

0  whether a value is a default
1  its source and synonyms instead
2  throttled after the response
"""

from collections.abc import Callable
from functools import partial

from broker.configs.admin import Resource, ResourceType
from broker.configs.describing import Entry
from broker.dispatch import RequestContext, handles
from broker.failures import ApiError
from broker.services import Services
from broker.topic_configs import ConfigSource
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


def _error(
    request: DescribeConfigsRequest, code: ErrorCode, message: str | None = None
) -> DescribeConfigsResponse:
    return DescribeConfigsResponse(
        results=[_refused(wanted, code, message) for wanted in request.resources]
    )


@handles(ApiKey.DESCRIBE_CONFIGS, versions=(0, 2), on_error=_error)
async def describe_configs(
    services: Services, context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    for wanted in request.resources:
        if ResourceType(wanted.resource_type) is ResourceType.UNKNOWN:
            message = f"Unexpected resource type {wanted.resource_type}"
            return _error(request, ErrorCode.INVALID_REQUEST, message)
    show = _shown_to_old if context.api_version == 0 else _shown
    return DescribeConfigsResponse(
        results=[
            await _describe(services, wanted, partial(show, synonyms=request.include_synonyms))
            for wanted in request.resources
        ]
    )


async def _describe(
    services: Services,
    wanted: DescribeConfigsResource,
    show: Callable[[Entry], DescribeConfigsResourceResult],
) -> DescribeConfigsResult:
    resource = Resource(ResourceType(wanted.resource_type), wanted.resource_name)
    try:
        entries = await services.configs.describe(resource)
    except ApiError as error:
        return _refused(wanted, error.code, error.message)
    names = wanted.configuration_keys
    return DescribeConfigsResult(
        error_message=None,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
        configs=[show(entry) for entry in entries if names is None or entry.name in names],
    )


def _shown_to_old(entry: Entry, *, synonyms: bool) -> DescribeConfigsResourceResult:
    """Version 0 knows neither sources nor synonyms."""
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        is_default=entry.source is ConfigSource.DEFAULT,
        is_sensitive=entry.is_sensitive,
    )


def _shown(entry: Entry, *, synonyms: bool) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=entry.name,
        value=entry.value,
        read_only=entry.is_read_only,
        config_source=entry.source,
        is_sensitive=entry.is_sensitive,
        synonyms=[
            DescribeConfigsSynonym(name=one.name, value=one.value, source=one.source)
            for one in (entry.synonyms if synonyms else ())
        ],
    )


def _refused(
    wanted: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    return DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=wanted.resource_type,
        resource_name=wanted.resource_name,
    )
