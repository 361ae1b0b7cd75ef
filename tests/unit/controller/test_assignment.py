"""Replica placement, held against outputs known from Apache Kafka."""

import random
from collections import Counter

import pytest

from controller.assignment import (
    BrokerRack,
    InvalidAssignmentError,
    InvalidPartitionsError,
    InvalidReplicationFactorError,
    assign_replicas,
    rack_alternated,
)

FIVE_BROKERS = [BrokerRack(broker) for broker in range(5)]
SIX_RACKED = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def racked(racks: dict[int, str]) -> list[BrokerRack]:
    return [BrokerRack(broker, rack) for broker, rack in racks.items()]


def test_replicas_go_round_the_brokers_with_a_growing_shift() -> None:
    assert assign_replicas(FIVE_BROKERS, 10, 3, start_index=0) == {
        0: (0, 1, 2),
        1: (1, 2, 3),
        2: (2, 3, 4),
        3: (3, 4, 0),
        4: (4, 0, 1),
        5: (0, 2, 3),
        6: (1, 3, 4),
        7: (2, 4, 0),
        8: (3, 0, 1),
        9: (4, 1, 2),
    }


def test_racks_alternate_in_the_ring() -> None:
    assert rack_alternated(SIX_RACKED) == [0, 3, 1, 5, 4, 2]
    without_five = {broker: rack for broker, rack in SIX_RACKED.items() if broker != 5}
    assert rack_alternated(without_five) == [0, 3, 1, 4, 2]


def test_replicas_cover_the_racks() -> None:
    assert assign_replicas(racked(SIX_RACKED), 7, 3, start_index=0) == {
        0: (0, 3, 1),
        1: (3, 1, 5),
        2: (1, 5, 4),
        3: (5, 4, 2),
        4: (4, 2, 0),
        5: (2, 0, 3),
        6: (0, 4, 2),
    }


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("replication_factor", [1, 2, 3, 4, 6])
def test_any_start_gives_an_even_spread_over_brokers_and_racks(
    seed: int, replication_factor: int
) -> None:
    assignment = assign_replicas(
        racked(SIX_RACKED), 12, replication_factor, chance=random.Random(seed)
    )
    leaders = Counter(replicas[0] for replicas in assignment.values())
    assert set(leaders.values()) == {2}
    for replicas in assignment.values():
        assert len(set(replicas)) == replication_factor
        assert len({SIX_RACKED[broker] for broker in replicas}) == min(replication_factor, 3)


def test_added_partitions_go_on_where_the_topic_ended() -> None:
    whole = assign_replicas(FIVE_BROKERS, 10, 3, start_index=0)
    added = assign_replicas(FIVE_BROKERS, 5, 3, start_index=0, first_partition=5)
    assert list(added) == [5, 6, 7, 8, 9]
    assert {partition: replicas[0] for partition, replicas in added.items()} == {
        partition: whole[partition][0] for partition in range(5, 10)
    }


def test_what_cannot_be_placed_is_refused() -> None:
    with pytest.raises(InvalidPartitionsError, match="must be larger than 0"):
        assign_replicas(FIVE_BROKERS, 0, 1)
    with pytest.raises(InvalidReplicationFactorError, match="must be larger than 0"):
        assign_replicas(FIVE_BROKERS, 1, 0)
    with pytest.raises(InvalidReplicationFactorError, match="6 larger than available brokers: 5"):
        assign_replicas(FIVE_BROKERS, 1, 6)
    with pytest.raises(InvalidAssignmentError, match="Not all brokers have rack information"):
        assign_replicas([BrokerRack(0, "a"), BrokerRack(1)], 1, 1)


def test_single_broker_takes_everything() -> None:
    assert assign_replicas([BrokerRack(7)], 3, 1) == {0: (7,), 1: (7,), 2: (7,)}
