"""ListTransactions (66): the transactions that a broker coordinates."""

from network.protocol.api_keys import ApiKey
from network.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Request, api=ApiKey.LIST_TRANSACTIONS, versions="0-1", flexible="0+"):
    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)


class TransactionState(Struct):
    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(
    Response, api=ApiKey.LIST_TRANSACTIONS, versions="0-1", flexible="0+"
):
    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[TransactionState] = array(TransactionState)
