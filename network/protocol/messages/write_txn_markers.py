"""WriteTxnMarkers (27): the coordinator ends transactions in the partitions that took part."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    boolean,
    int16,
    int32,
    int64,
    string,
)


class WritableTxnMarkerTopic(Struct):
    name: str = string()
    partition_indexes: list[int] = array(int32)


class WritableTxnMarker(Struct):
    producer_id: int = int64()
    producer_epoch: int = int16()
    transaction_result: bool = boolean()
    topics: list[WritableTxnMarkerTopic] = array(WritableTxnMarkerTopic)
    coordinator_epoch: int = int32()


class WriteTxnMarkersRequest(Request, api=ApiKey.WRITE_TXN_MARKERS, versions="0-1", flexible="1+"):
    markers: list[WritableTxnMarker] = array(WritableTxnMarker)


class WritableTxnMarkerPartitionResult(Struct):
    partition_index: int = int32()
    error_code: int = int16()


class WritableTxnMarkerTopicResult(Struct):
    name: str = string()
    partitions: list[WritableTxnMarkerPartitionResult] = array(WritableTxnMarkerPartitionResult)


class WritableTxnMarkerResult(Struct):
    producer_id: int = int64()
    topics: list[WritableTxnMarkerTopicResult] = array(WritableTxnMarkerTopicResult)


class WriteTxnMarkersResponse(
    Response, api=ApiKey.WRITE_TXN_MARKERS, versions="0-1", flexible="1+"
):
    markers: list[WritableTxnMarkerResult] = array(WritableTxnMarkerResult)
