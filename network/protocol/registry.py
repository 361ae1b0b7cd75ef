"""From an API's key to the classes of its messages.

A module of messages is imported when its API is first met, so that a broker pays only for what
it serves.
"""

from importlib import import_module
from typing import Any, TypeVar, cast

from network.protocol.api_keys import ApiKey
from network.protocol.exceptions import UnsupportedVersionError
from network.protocol.schema import Request, Response

T = TypeVar("T")


def request_class(api_key: int, api_version: int | None = None) -> type[Request]:
    """The class of an API's requests; raises UnsupportedVersionError where no schema exists."""
    return cast("type[Request]", _message_class(api_key, api_version, "Request"))


def response_class(api_key: int, api_version: int | None = None) -> type[Response]:
    """The class of an API's responses; raises UnsupportedVersionError where no schema exists."""
    return cast("type[Response]", _message_class(api_key, api_version, "Response"))


def _message_class(api_key: int, api_version: int | None, side: str) -> Any:
    try:
        name = ApiKey(api_key).name
    except ValueError:
        raise UnsupportedVersionError(api_key, api_version) from None
    module = import_module(f"network.protocol.messages.{name.lower()}")
    camel = "".join(word.capitalize() for word in name.split("_"))
    message = getattr(module, camel + side)
    if api_version is not None and api_version not in message.VERSIONS:
        raise UnsupportedVersionError(api_key, api_version)
    return message


class VersionTable(dict[int, T]):
    """What belongs to one version of one API, made when it is first asked for.

    A key is `(api_key << 16) + api_version`. Only versions that have a schema are kept, so that
    no peer can make the table grow.
    """

    def __missing__(self, key: int) -> T:
        api_key = (key + 0x8000) >> 16
        api_version = key - (api_key << 16)
        made = self.make(api_key, api_version)
        if api_version in request_class(api_key).VERSIONS:
            self[key] = made
        return made

    def make(self, api_key: int, api_version: int) -> T:
        """Make an entry."""
        raise NotImplementedError
