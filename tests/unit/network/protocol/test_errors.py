"""Error codes, by number and by whether a client may try again."""

from network.protocol import ErrorCode


def test_codes_have_the_numbers_of_the_protocol() -> None:
    assert ErrorCode.NONE.value == 0
    assert ErrorCode.UNKNOWN_SERVER_ERROR.value == -1
    assert ErrorCode.UNSUPPORTED_VERSION.value == 35
    assert ErrorCode(3) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert sorted(ErrorCode)[0] == -1
    assert set(range(-1, 99)) <= set(ErrorCode)


def test_what_may_pass_is_retriable() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.retriable
    assert not ErrorCode.NONE.retriable
    assert not ErrorCode.MESSAGE_TOO_LARGE.retriable
    assert not ErrorCode.UNKNOWN_SERVER_ERROR.retriable
