"""Settings of clients and users (quotas, credentials), kept as ZooKeeper holds them.

Names are sanitized as in ZooKeeper: a user, a client id, or user/clients/client-id.
"""

from collections.abc import Mapping


class ClientConfigs:
    """What is set for clients and users, by name; `<default>` stands for all others."""

    def __init__(self) -> None:
        self.clients: dict[str, Mapping[str, str]] = {}
        self.users: dict[str, Mapping[str, str]] = {}

    def client_changed(self, client: str, settings: Mapping[str, str]) -> None:
        _keep(self.clients, client, settings)

    def user_changed(self, user: str, settings: Mapping[str, str]) -> None:
        _keep(self.users, user, settings)


def _keep(kept: dict[str, Mapping[str, str]], name: str, settings: Mapping[str, str]) -> None:
    if settings:
        kept[name] = dict(settings)
    else:
        kept.pop(name, None)
