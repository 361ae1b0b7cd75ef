"""What can go wrong between bytes and messages.

A `ProtocolError` is the peer's fault and costs it the connection; an `EncodeError` is ours.
"""


class ProtocolError(Exception):
    """The bytes received are not a message; nothing more can be read from that connection."""


class UnsupportedVersionError(ProtocolError):
    """A well-formed header that names an API or a version for which no schema exists."""

    def __init__(self, api_key: int, api_version: int | None) -> None:
        version = "" if api_version is None else f" version {api_version}"
        super().__init__(f"no schema for API key {api_key}{version}")
        self.api_key = api_key
        self.api_version = api_version


class EncodeError(ValueError):
    """A message holds a value that the version being encoded cannot carry."""
