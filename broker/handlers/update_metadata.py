"""UpdateMetadata: the controller's picture of the cluster, for the metadata cache.

0  one endpoint per broker
1  endpoints by security protocol
2  racks
3  listener names
4  offline replicas
5  partitions grouped by topic, broker epoch
6  flexible
"""

from broker.dispatch import RequestContext, handles
from broker.services import Services
from network.protocol import ApiKey, ErrorCode
from network.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def _error(_request: UpdateMetadataRequest, code: ErrorCode) -> UpdateMetadataResponse:
    return UpdateMetadataResponse(error_code=code)


@handles(ApiKey.UPDATE_METADATA, versions=(0, 6), on_error=_error)
def update_metadata(
    services: Services, _context: RequestContext | None, request: UpdateMetadataRequest
) -> UpdateMetadataResponse:
    code = services.check_controller_request(request.broker_epoch, request.controller_epoch)
    if code == ErrorCode.NONE:
        deleted = services.metadata.update(request)
        if deleted:
            services.groups.forget_partitions(deleted)
    return UpdateMetadataResponse(error_code=code)
