"""Random records of groups, of what a version can carry."""

from hypothesis import strategies as st

from broker.groups.record_formats import GroupKey, GroupMember, GroupValue, OffsetKey, OffsetValue

int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
texts = st.text(st.characters(codec="utf-8"), max_size=20)
optional_texts = st.none() | texts
binaries = st.binary(max_size=40)


def offset_keys() -> st.SearchStrategy[OffsetKey]:
    return st.builds(OffsetKey, group=texts, topic=texts, partition=int32s)


def group_keys() -> st.SearchStrategy[GroupKey]:
    return st.builds(GroupKey, group=texts)


def offset_values(version: int) -> st.SearchStrategy[OffsetValue]:
    return st.builds(
        OffsetValue,
        offset=int64s,
        leader_epoch=int32s if version == 3 else st.just(-1),
        metadata=texts,
        commit_timestamp=int64s,
        expire_timestamp=int64s if version == 1 else st.just(-1),
    )


@st.composite
def group_members(draw: st.DrawFn, version: int) -> GroupMember:
    session_timeout = draw(int32s)
    return GroupMember(
        member_id=draw(texts),
        group_instance_id=draw(optional_texts) if version >= 3 else None,
        client_id=draw(texts),
        client_host=draw(texts),
        rebalance_timeout=draw(int32s) if version >= 1 else session_timeout,
        session_timeout=session_timeout,
        subscription=draw(binaries),
        assignment=draw(binaries),
    )


def group_values(version: int) -> st.SearchStrategy[GroupValue]:
    return st.builds(
        GroupValue,
        protocol_type=texts,
        generation=int32s,
        protocol=optional_texts,
        leader=optional_texts,
        current_state_timestamp=int64s if version >= 2 else st.just(-1),
        members=st.lists(group_members(version), max_size=4),
    )
