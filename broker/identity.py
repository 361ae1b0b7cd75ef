"""Which broker of which cluster this is: settings, meta.properties and ZooKeeper must agree."""

import base64
import logging
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from broker.errors import StartupError
from broker.settings import Settings
from controller.metadata_store import MetadataStore
from storage.files import Files
from storage.meta_properties import MetaProperties, read_meta_properties, write_meta_properties

logger = logging.getLogger(__name__)

TO_BE_GENERATED = -1


@dataclass(frozen=True, slots=True)
class Identity:
    """A broker's place in the world."""

    broker_id: int
    cluster_id: str


async def establish_identity(
    settings: Settings, store: MetadataStore, directories: Sequence[Path], files: Files
) -> Identity:
    """Find out who this broker is; raises StartupError where the sources contradict each other."""
    stored = {path: read_meta_properties(files, path) for path in directories}
    known = {path: meta for path, meta in stored.items() if meta is not None}
    cluster_id = await store.get_or_create_cluster_id(_new_cluster_id())
    _check_cluster(cluster_id, known)
    broker_id = _stored_broker_id(settings, known)
    if broker_id == TO_BE_GENERATED:
        broker_id = settings.reserved_broker_max_id + await store.next_broker_id()
    logger.info("Cluster ID = %s", cluster_id)
    return Identity(broker_id, cluster_id)


def record_identity(identity: Identity, directories: Sequence[Path], files: Files) -> None:
    """Write meta.properties where it is missing, once the broker has been registered."""
    meta = MetaProperties(identity.broker_id, identity.cluster_id)
    for path in directories:
        if read_meta_properties(files, path) != meta:
            write_meta_properties(files, path, meta)


def _check_cluster(cluster_id: str, known: dict[Path, MetaProperties]) -> None:
    for path, meta in known.items():
        if meta.cluster_id not in (None, cluster_id):
            raise StartupError(
                f"{path} belongs to cluster {meta.cluster_id}, ZooKeeper to cluster {cluster_id}:"
                " point zookeeper.connect at the right ensemble, or log.dirs at another directory"
            )


def _stored_broker_id(settings: Settings, known: dict[Path, MetaProperties]) -> int:
    ids = {meta.broker_id for meta in known.values()}
    if len(ids) > 1:
        named = ", ".join(f"{path} to broker {meta.broker_id}" for path, meta in known.items())
        raise StartupError(
            f"the log directories belong to several brokers ({named}): separate them"
        )
    stored = ids.pop() if ids else TO_BE_GENERATED
    if TO_BE_GENERATED not in (stored, settings.broker_id) and stored != settings.broker_id:
        raise StartupError(
            f"broker.id is {settings.broker_id}, but {next(iter(known))} belongs to broker"
            f" {stored}: set broker.id={stored}, or point log.dirs at another directory"
        )
    return stored if settings.broker_id == TO_BE_GENERATED else settings.broker_id


def _new_cluster_id() -> str:
    """22 characters of base64 for URLs, as Kafka makes them: a random UUID without padding."""
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
