"""A group coordinator on real logs, with a clock that tests move."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.groups.commits import CommitResult, Committing
from broker.groups.coordinator import GroupCoordinator
from broker.groups.group import Group
from broker.groups.membership import Joining, Syncing
from broker.groups.offsets import CommittedOffset, TopicPartition
from broker.groups.results import JoinResult, LeaveResult, SyncResult
from broker.groups.settings import GroupSettings
from broker.groups.store import StoreSettings
from broker.log_flusher import LogFlusher
from broker.metadata_cache import MetadataCache
from broker.replica_manager import ReplicaManager
from broker.timing_wheel import TimingWheel
from broker.topic_names import GROUP_METADATA_TOPIC
from network.protocol import ErrorCode
from storage.files import Files
from storage.log_config import LogConfig
from storage.log_manager import LogManager
from storage.records import Codec
from tests.support.manual_loop import ManualLoop
from tests.support.partitions import BROKER_ID, decision

SESSION_MS = 10_000
REBALANCE_MS = 60_000
FIRST_MS = 1_700_000_000_000

STORE_SETTINGS = StoreSettings(
    codec=Codec.NONE,
    required_acks=-1,
    timeout_ms=5000,
    group_value_version=3,
    offset_value_version=None,
)


def make_settings(
    *,
    initial_delay_ms: int = 0,
    max_size: int = 1000,
    max_metadata_length: int = 4096,
    store: StoreSettings = STORE_SETTINGS,
) -> GroupSettings:
    return GroupSettings(
        min_session_timeout_ms=6000,
        max_session_timeout_ms=1_800_000,
        initial_rebalance_delay_ms=initial_delay_ms,
        max_size=max_size,
        max_metadata_length=max_metadata_length,
        retention_ms=60_000,
        load_buffer_bytes=1 << 20,
        knows_static_members=True,
        store=store,
    )


class TestCoordinator:
    """Every question is asked as a handler asks it; answers are lists that fill when they come."""

    __test__ = False

    def __init__(
        self,
        directory: Path,
        settings: GroupSettings | None = None,
        *,
        files: Files | None = None,
        config: LogConfig | None = None,
        partitions: int = 1,
    ) -> None:
        self.loop = ManualLoop()
        self._directory = directory
        self._settings = settings or make_settings()
        self._files = files
        self._config = config or LogConfig(cleanup_policy=frozenset({"compact"}))
        self._partitions = partitions
        self._leader_epoch = 0
        self._open()

    def _open(self) -> None:
        wheel = TimingWheel(self.loop.time, self.loop.call_later)
        self.logs = LogManager([self._directory], self._config, self.now_ms, self._files)
        self.logs.load()
        self.replicas = ReplicaManager(
            BROKER_ID, self.logs, MetadataCache(), lambda _topic: self._config, wheel
        )
        self.coordinator = GroupCoordinator(
            self._settings,
            self._partitions,
            self.replicas,
            LogFlusher(),
            wheel,
            lambda callback: self.loop.call_later(0.0, lambda: (callback(), None)[1]),
            self.now_ms,
        )

    def now_ms(self) -> int:
        return FIRST_MS + round(self.loop.now * 1000)

    def advance(self, seconds: float) -> None:
        self.loop.advance(seconds)

    def settle(self) -> None:
        """Let happen what is due at once."""
        self.loop.advance(0.01)

    # Leadership

    def lead(self, partition: int = 0, *, leader: int = BROKER_ID, isr: Sequence[int] = ()) -> None:
        """Have the controller decide; a partition that holds something is loaded meanwhile."""
        self._leader_epoch += 1
        state = decision(
            partition=partition,
            leader=leader,
            epoch=self._leader_epoch,
            isr=tuple(isr) or (leader,),
            replicas=(BROKER_ID, 1),
        )
        self.replicas.become_leader_or_follower(GROUP_METADATA_TOPIC, state)

    def replicate(self, partition: int = 0) -> None:
        """Have the replicas confirm all that was written."""
        found = self.replicas.partitions[GROUP_METADATA_TOPIC, partition]
        found.log.update_high_watermark(found.log.end_offset)
        self.replicas.delayed_produces.check(found.key)

    async def lead_and_load(self) -> None:
        for partition in range(self._partitions):
            self.lead(partition)
        while self.coordinator.registry.is_loading:
            await asyncio.sleep(0.001)

    def restart(self) -> None:
        """The broker goes, without a word, and another one takes its log over."""
        asyncio.run(self.coordinator.stop())
        self.logs.close()
        self._open()
        asyncio.run(self.lead_and_load())

    def group(self, group_id: str = "g") -> Group:
        return self.coordinator.registry.groups[group_id]

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        protocols: Mapping[str, bytes] | None = None,
        protocol_type: str = "consumer",
        needs_known_id: bool = False,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> list[JoinResult]:
        joining = Joining(
            group,
            member_id,
            instance,
            "client",
            "/127.0.0.1",
            rebalance_ms,
            session_ms,
            protocol_type,
            list(({"range": b""} if protocols is None else protocols).items()),
            needs_known_id,
        )
        answers: list[JoinResult] = []
        self.coordinator.join(joining, answers.append)
        return answers

    def sync(
        self,
        member_id: str,
        generation: int,
        assignment: Mapping[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol: str | None = None,
    ) -> list[SyncResult]:
        answers: list[SyncResult] = []
        syncing = Syncing(
            group, generation, member_id, instance, protocol_type, protocol, assignment or {}
        )
        self.coordinator.sync(syncing, answers.append)
        return answers

    def heartbeat(
        self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None
    ) -> ErrorCode:
        return self.coordinator.heartbeat(group, member_id, instance, generation)

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> LeaveResult:
        return self.coordinator.leave(group, members)

    def commit(
        self,
        offsets: Mapping[TopicPartition, int | CommittedOffset],
        *,
        member_id: str = "",
        generation: int = -1,
        group: str = "g",
        instance: str | None = None,
    ) -> list[CommitResult]:
        answers: list[CommitResult] = []
        commits = {
            partition: (
                CommittedOffset(offset, commit_timestamp=self.now_ms())
                if isinstance(offset, int)
                else offset
            )
            for partition, offset in offsets.items()
        }
        committing = Committing(group, member_id, instance, generation, commits)
        self.coordinator.commit(committing, answers.append)
        return answers

    def committed(self, partition: TopicPartition, group: str = "g") -> int | None:
        error, found = self.coordinator.fetch(group, [partition], require_stable=False)
        assert error == ErrorCode.NONE
        offset = found[partition]
        assert offset is None or isinstance(offset, CommittedOffset)
        return None if offset is None else offset.offset

    # Whole rebalances

    def new_member(self, **options: object) -> str:
        """Join as an old client does, with no id, and be in the next generation."""
        answers = self.join(**options)  # type: ignore[arg-type]
        self.rejoin_all()
        self.settle()
        assert answers, "still waiting"
        assert answers[0].error == ErrorCode.NONE
        return answers[0].member_id

    def rejoin_all(self, group: str = "g") -> list[list[JoinResult]]:
        """Everybody who is called together comes."""
        return [
            self.join(
                member.member_id,
                group=group,
                instance=member.group_instance_id,
                protocols=dict(member.protocols),
            )
            for member in self.group(group).not_rejoined()
        ]

    def stabilize(self, group: str = "g") -> dict[str, bytes]:
        """The leader assigns, everybody syncs; what each was assigned."""
        self.settle()
        found = self.group(group)
        assignment = {one: f"part of {one}".encode() for one in found.members}
        answers = {
            member_id: self.sync(member_id, found.generation, assignment, group=group)
            for member_id in sorted(found.members, key=lambda one: one == found.leader_id)
        }
        self.settle()
        return {member_id: answer[0].assignment for member_id, answer in answers.items()}
