"""The offsets of one group: those committed, those on their way to the log, those in transactions.

Owns which commit wins: the one whose batch lies later in the log, whether it came alone or in a
transaction. Must not know the log or the members.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from broker.groups.record_formats import NO_LEADER_EPOCH, NO_TIMESTAMP

TopicPartition = tuple[str, int]

NOT_WRITTEN: Final = -1


class CommittedOffset(NamedTuple):
    """How far a group has read a partition, with the offset of the batch that says so."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH
    commit_timestamp: int = NO_TIMESTAMP
    expire_timestamp: int = NO_TIMESTAMP
    written_at: int = NOT_WRITTEN


Commits = Mapping[TopicPartition, CommittedOffset]


class GroupOffsets:
    """Offsets by partition."""

    __slots__ = ("_committed", "_in_transactions", "_pending")

    def __init__(self) -> None:
        self._committed: dict[TopicPartition, CommittedOffset] = {}
        self._pending: dict[TopicPartition, CommittedOffset] = {}
        self._in_transactions: dict[int, dict[TopicPartition, CommittedOffset]] = {}

    def __bool__(self) -> bool:
        return bool(self._committed or self._pending or self._in_transactions)

    def __len__(self) -> int:
        return len(self._committed)

    @property
    def committed(self) -> Commits:
        return self._committed

    @property
    def open_producers(self) -> Collection[int]:
        """The producers whose transactions hold commits of this group."""
        return self._in_transactions.keys()

    def is_unstable(self, partition: TopicPartition) -> bool:
        """Whether a commit for this partition is under way and may yet replace what is there."""
        return partition in self._pending or any(
            partition in commits for commits in self._in_transactions.values()
        )

    # Commits of consumers

    def begin(self, commits: Commits) -> None:
        """Commits go to the log."""
        self._pending.update(commits)

    def written(self, commits: Commits, at: int) -> None:
        """They are in the log; a partition that was deleted meanwhile stays forgotten."""
        for partition, commit in commits.items():
            if partition in self._pending:
                self._keep_newer(partition, commit._replace(written_at=at))
        self.failed(commits)

    def failed(self, commits: Commits) -> None:
        """They did not get into the log, or are no longer on their way."""
        for partition, commit in commits.items():
            if self._pending.get(partition) is commit:
                del self._pending[partition]

    # Commits in transactions

    def begin_in_transaction(self, producer_id: int, commits: Commits) -> None:
        self._in_transactions.setdefault(producer_id, {}).update(commits)

    def written_in_transaction(self, producer_id: int, commits: Commits, at: int) -> None:
        open_commits = self._in_transactions.get(producer_id, {})
        for partition, commit in commits.items():
            if open_commits.get(partition) is commit:
                open_commits[partition] = commit._replace(written_at=at)

    def failed_in_transaction(self, producer_id: int, commits: Commits) -> None:
        open_commits = self._in_transactions.get(producer_id)
        if open_commits is not None:
            for partition in commits:
                open_commits.pop(partition, None)
            if not open_commits:
                del self._in_transactions[producer_id]

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """A marker is in the log: what the transaction committed counts from now, or never did."""
        commits = self._in_transactions.pop(producer_id, {})
        if committed:
            for partition, commit in commits.items():
                self._keep_newer(partition, commit)

    # Loading and removal

    def load(
        self,
        committed: Commits,
        in_transactions: Mapping[int, Commits],
    ) -> None:
        self._committed.update(committed)
        for producer_id, commits in in_transactions.items():
            self._in_transactions.setdefault(producer_id, {}).update(commits)

    def remove(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Forget partitions; returns those that had a committed offset."""
        removed = []
        for partition in partitions:
            self._pending.pop(partition, None)
            for commits in self._in_transactions.values():
                commits.pop(partition, None)
            if self._committed.pop(partition, None) is not None:
                removed.append(partition)
        return removed

    def would_be_empty_without(self, partitions: Iterable[TopicPartition]) -> bool:
        gone = set(partitions)
        return (
            self._committed.keys() <= gone
            and self._pending.keys() <= gone
            and all(commits.keys() <= gone for commits in self._in_transactions.values())
        )

    def expired(
        self,
        now_ms: int,
        retention_ms: int,
        counted_from: Callable[[CommittedOffset], int],
        kept_topics: Collection[str] = (),
    ) -> list[TopicPartition]:
        """What is too old; commits that named their own end hold until then."""
        return [
            partition
            for partition, commit in self._committed.items()
            if partition[0] not in kept_topics
            and partition not in self._pending
            and (
                now_ms >= commit.expire_timestamp
                if commit.expire_timestamp != NO_TIMESTAMP
                else now_ms - counted_from(commit) >= retention_ms
            )
        ]

    def _keep_newer(self, partition: TopicPartition, commit: CommittedOffset) -> None:
        known = self._committed.get(partition)
        if known is None or known.written_at < commit.written_at:
            self._committed[partition] = commit
