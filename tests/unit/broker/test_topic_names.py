import pytest

from broker.failures import ApiError
from broker.topic_names import MAX_LENGTH, check_collision, check_name, is_internal
from network.protocol import ErrorCode


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * MAX_LENGTH, "...", "_"])
def test_legal_names_pass(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "x" * (MAX_LENGTH + 1), "a b", "ä", "a/b", "a\n"])
def test_illegal_names_are_refused(name: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_name(name)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_dot_and_underscore_collide() -> None:
    with pytest.raises(ApiError, match=r"collides with existing topics: a\.b"):
        check_collision("a_b", ["a.b", "other"])
    check_collision("a_b", ["a-b", "ab"])
    check_collision("ab", ["a.b"])


def test_the_brokers_own_topics_are_internal() -> None:
    assert is_internal("__consumer_offsets")
    assert is_internal("__transaction_state")
    assert not is_internal("_consumer_offsets")
