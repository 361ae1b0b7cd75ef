"""TLS contexts made from settings: one for those who connect, one for our own connections.

A context can be made anew while the broker runs, from other settings or from files that have
changed; connections that are open keep the one that they began with. Knows no settings files.
"""

import logging
import os
import socket
import ssl
import sys
import tempfile
import warnings
from dataclasses import dataclass
from enum import Enum
from typing import IO

from network.tls.cipher_suites import split_suites
from network.tls.stores import (
    Identity,
    Store,
    StoreError,
    certificate_names,
    load_authorities,
    load_identities,
)

logger = logging.getLogger(__name__)

VERSIONS = {
    "TLSv1": ssl.TLSVersion.TLSv1,
    "TLSv1.1": ssl.TLSVersion.TLSv1_1,
    "TLSv1.2": ssl.TLSVersion.TLSv1_2,
    "TLSv1.3": ssl.TLSVersion.TLSv1_3,
}
_FORBIDDING = {
    "TLSv1": ssl.OP_NO_TLSv1,
    "TLSv1.1": ssl.OP_NO_TLSv1_1,
    "TLSv1.2": ssl.OP_NO_TLSv1_2,
    "TLSv1.3": ssl.OP_NO_TLSv1_3,
}


class TlsError(ValueError):
    """Settings from which no context can be made; the text names the setting."""


class ClientAuth(Enum):
    """Whether clients must show a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


_VERIFICATION = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The settings `ssl.*` of one listener."""

    key_store: Store | None = None
    trust_store: Store | None = None
    client_auth: ClientAuth = ClientAuth.NONE
    enabled_protocols: tuple[str, ...] = ("TLSv1.2",)
    cipher_suites: tuple[str, ...] = ()
    checks_host_name: bool = True

    @property
    def stores(self) -> tuple[Store, ...]:
        return tuple(one for one in (self.key_store, self.trust_store) if one is not None)


class TlsContext:
    """The certificates of one listener."""

    def __init__(self, settings: TlsSettings) -> None:
        """Raises TlsError."""
        self.settings = settings
        self._modified = self._look_at_files()
        self._server = make_server_context(settings)
        self._names = _names_of(settings)

    def wrap(self, sock: socket.socket) -> ssl.SSLSocket:
        """A server's side of TLS on a non-blocking socket; the handshake is still to come."""
        return self._server.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)

    def client_context(self) -> ssl.SSLContext:
        """For connections of our own to the same listener of another broker."""
        return make_client_context(self.settings)

    def reload(self, settings: TlsSettings | None = None) -> None:
        """Use other settings, or the same with what is in the files now, for connections to come.
        Raises TlsError and then changes nothing."""
        settings = settings or self.settings
        server = make_server_context(settings)
        self.settings, self._server = settings, server
        self._names = _names_of(settings)
        self._modified = self._look_at_files()
        names = ", ".join(str(store.location) for store in settings.stores)
        logger.info("TLS context made anew from %s", names)

    def check_replacement(self, settings: TlsSettings) -> None:
        """Refuse settings that cannot follow the present ones: as in Kafka a listener keeps its
        certificate's names, and neither gains nor loses a store. Raises TlsError."""
        make_server_context(settings)
        old, new = self.settings, settings
        if old.trust_store is None and new.trust_store is not None:
            raise TlsError("ssl.truststore.location: a listener without one cannot get one")
        if old.key_store is None or new.key_store is None or self._names is None:
            return
        if certificate_names(new.key_store) != self._names:
            raise TlsError(
                "ssl.keystore.location: the certificate's subject or alternative names differ from"
                " those of the present one"
            )

    @property
    def files_have_changed(self) -> bool:
        """A store has been written since it was read."""
        return self._look_at_files() != self._modified

    def _look_at_files(self) -> tuple[int | None, ...]:
        return tuple(store.modified_at() for store in self.settings.stores)


def _names_of(settings: TlsSettings) -> list[tuple[str, frozenset[str]]] | None:
    return None if settings.key_store is None else certificate_names(settings.key_store)


def make_server_context(settings: TlsSettings) -> ssl.SSLContext:
    if settings.key_store is None:
        raise TlsError("ssl.keystore.location: a listener that speaks TLS needs a key store")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _configure(context, settings)
    context.verify_mode = _VERIFICATION[settings.client_auth]
    if settings.trust_store is None and settings.client_auth is not ClientAuth.NONE:
        context.load_default_certs(ssl.Purpose.CLIENT_AUTH)
    return context


def make_client_context(settings: TlsSettings) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    _configure(context, settings)
    context.check_hostname = settings.checks_host_name
    if settings.trust_store is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def _configure(context: ssl.SSLContext, settings: TlsSettings) -> None:
    try:
        _limit_versions(context, settings)
        _load_stores(context, settings)
    except (StoreError, ssl.SSLError) as error:
        raise TlsError(str(error)) from error


def _limit_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    unknown = [name for name in settings.enabled_protocols if name not in VERSIONS]
    if unknown:
        raise TlsError(f"ssl.enabled.protocols: {unknown[0]} is none of {', '.join(VERSIONS)}")
    wanted = set(settings.enabled_protocols) or {"TLSv1.2", "TLSv1.3"}
    if settings.cipher_suites:
        older, has_newest = split_suites(settings.cipher_suites)
        # Python cannot choose among the suites of TLS 1.3; it can go without that version.
        wanted -= set() if has_newest else {"TLSv1.3"}
        wanted -= set() if older else wanted - {"TLSv1.3"}
        if older:
            _choose_suites(context, older)
    if not wanted:
        raise TlsError("ssl.cipher.suites: none of them fits ssl.enabled.protocols")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # old versions are the operator's wish
        allowed = [name for name in VERSIONS if name in wanted]
        context.minimum_version = VERSIONS[allowed[0]]
        context.maximum_version = VERSIONS[allowed[-1]]
        for name in set(VERSIONS) - wanted:
            context.options |= _FORBIDDING[name]


def _choose_suites(context: ssl.SSLContext, suites: list[str]) -> None:
    try:
        context.set_ciphers(":".join(suites))
    except ssl.SSLError:
        raise TlsError(f"ssl.cipher.suites: none is known of {', '.join(suites)}") from None


def _load_stores(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.key_store is not None:
        for identity in load_identities(settings.key_store):
            try:
                _load_identity(context, identity)
            except (ssl.SSLError, ValueError) as error:
                raise TlsError(
                    f"ssl.keystore.location: {settings.key_store.location}: {error}"
                ) from error
    if settings.trust_store is not None:
        context.load_verify_locations(cadata=load_authorities(settings.trust_store))


def _load_identity(context: ssl.SSLContext, identity: Identity) -> None:
    """OpenSSL takes keys from files only: this one has no name and lies in memory."""
    with _nameless_file() as file:
        file.write(identity.pem.encode())
        file.flush()
        # An empty password keeps OpenSSL from asking the terminal for one.
        password = identity.key_password or ""
        context.load_cert_chain(f"/dev/fd/{file.fileno()}", password=lambda: password)


def _nameless_file() -> IO[bytes]:
    if sys.platform != "linux":
        return tempfile.TemporaryFile()
    return os.fdopen(os.memfd_create("key", os.MFD_CLOEXEC), "w+b")
