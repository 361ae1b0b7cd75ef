"""TLS listeners over real sockets: who may come in, what survives, what is made anew."""

import asyncio
import os
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from network.request import Request
from network.request_channel import Handler
from network.socket_server import ListenerEndpoint, NetworkLimits, SocketServer
from network.tls.context import ClientAuth, TlsContext, TlsError, TlsSettings
from network.tls.stores import Store
from network.tls.verification import verify_own_certificate
from tests.support.certificates import Authority, Holder, TlsFiles, make_tls_files
from tests.unit.network.sockets import Client, Region, echo, framed, run


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


def settings_of(files: TlsFiles, client_auth: ClientAuth = ClientAuth.REQUIRED) -> TlsSettings:
    return TlsSettings(
        key_store=Store(files.server, "PEM"),
        trust_store=Store(files.authority, "PEM"),
        client_auth=client_auth,
        enabled_protocols=("TLSv1.2", "TLSv1.3"),
    )


@asynccontextmanager
async def serving(
    handler: Handler, tls: TlsContext, limits: NetworkLimits | None = None
) -> AsyncIterator[SocketServer]:
    endpoint = ListenerEndpoint("SSL", "SSL", "127.0.0.1", 0, tls)
    server = SocketServer([endpoint], limits or NetworkLimits(), handler)
    server.bind()
    server.start_processing()
    try:
        yield server
    finally:
        await server.stop()
        assert server.connection_count == 0


def client_context(files: TlsFiles, *, with_certificate: bool = True) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(files.authority))
    if with_certificate:
        context.load_cert_chain(files.client_certificate, files.client_key)
    return context


async def is_turned_away(server: SocketServer, context: ssl.SSLContext) -> bool:
    """With TLS 1.3 a client hears of it only when it reads."""
    try:
        client = await Client.connect(server, "SSL", context)
        await client.ask(b"hello")
    except (ssl.SSLError, ConnectionError, asyncio.IncompleteReadError):
        return True
    return False


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_requests_of_all_sizes_are_answered_in_order(
    files: TlsFiles, version: ssl.TLSVersion
) -> None:
    async def scenario() -> None:
        async with serving(echo, TlsContext(settings_of(files))) as server:
            context = client_context(files)
            context.minimum_version = context.maximum_version = version
            client = await Client.connect(server, "SSL", context)
            payloads = [os.urandom(size) for size in (1, 100, 17_000, 3 << 20, 5, 70_000)] * 3
            client.send(*payloads)
            assert [await client.receive() for _ in payloads] == payloads

    run(scenario)


def test_what_was_decrypted_while_a_request_was_at_work_is_not_forgotten(files: TlsFiles) -> None:
    async def scenario() -> None:
        parked: list[Request] = []

        def park_large(request: Request) -> None:
            if len(request.frame) > 1000:
                parked.append(request)
            else:
                echo(request)

        async with serving(park_large, TlsContext(settings_of(files))) as server:
            client = await Client.connect(server, "SSL", client_context(files))
            # The end of the large frame shares a TLS record with the small one.
            client.send(b"L" * 200_000, b"behind")
            while not parked:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.05)
            parked[0].respond([framed(b"large")])
            assert await client.receive() == b"large"
            assert await client.receive() == b"behind"

    run(scenario)


def test_file_regions_are_read_in_chunks_between_buffers(files: TlsFiles) -> None:
    content = os.urandom(3 << 20)

    async def scenario() -> None:
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.flush()

            def send_file(request: Request) -> None:
                region = Region(file, 100, len(content) - 200)
                head = len(region) + 8
                request.respond([head.to_bytes(4, "big"), b"head", region, b"tail"])

            async with serving(send_file, TlsContext(settings_of(files))) as server:
                client = await Client.connect(server, "SSL", client_context(files))
                client.send(b"a", b"b")
                expected = b"head" + content[100:-100] + b"tail"
                assert await client.receive() == expected
                assert await client.receive() == expected

    run(scenario)


@pytest.mark.parametrize(
    ("client_auth", "is_let_in"),
    [(ClientAuth.NONE, True), (ClientAuth.REQUESTED, True), (ClientAuth.REQUIRED, False)],
)
def test_a_client_without_certificate(
    files: TlsFiles, client_auth: ClientAuth, is_let_in: bool
) -> None:
    async def scenario() -> None:
        seen: list[bytes | None] = []

        def look(request: Request) -> None:
            seen.append(request.channel.peer_certificate)
            echo(request)

        async with serving(look, TlsContext(settings_of(files, client_auth))) as server:
            context = client_context(files, with_certificate=False)
            if is_let_in:
                client = await Client.connect(server, "SSL", context)
                client.send(b"hello")
                assert await client.receive() == b"hello"
                assert seen == [None]
            else:
                assert await is_turned_away(server, context)
                assert server.counters("SSL").failed_handshakes == 1
                assert not seen

    run(scenario)


def test_a_certificate_of_another_authority_is_refused_and_ours_is_shown(
    files: TlsFiles, tmp_path: Path
) -> None:
    async def scenario() -> None:
        seen: list[bytes | None] = []

        def look(request: Request) -> None:
            seen.append(request.channel.peer_certificate)
            echo(request)

        stranger = Authority("another").issue("stranger")
        (tmp_path / "stranger.pem").write_bytes(stranger.pem())
        wrong = client_context(files, with_certificate=False)
        wrong.load_cert_chain(tmp_path / "stranger.pem")
        async with serving(look, TlsContext(settings_of(files))) as server:
            assert await is_turned_away(server, wrong)
            right = await Client.connect(server, "SSL", client_context(files))
            right.send(b"hello")
            assert await right.receive() == b"hello"
        der = ssl.PEM_cert_to_DER_cert(files.client_certificate.read_text())
        assert seen == [der]

    run(scenario)


def test_bytes_that_are_no_tls_cost_only_their_connection(files: TlsFiles) -> None:
    async def scenario() -> None:
        async with serving(echo, TlsContext(settings_of(files))) as server:
            plain = await Client.connect(server, "SSL")
            plain.send(b"not a handshake at all")
            assert await plain.is_closed_by_server()
            good = await Client.connect(server, "SSL", client_context(files))
            good.send(b"fine")
            assert await good.receive() == b"fine"

    run(scenario)


def test_a_silent_handshake_is_closed_as_idle(files: TlsFiles) -> None:
    async def scenario() -> None:
        limits = NetworkLimits(max_idle_seconds=0.2)
        async with serving(echo, TlsContext(settings_of(files)), limits) as server:
            client = await Client.connect(server, "SSL")
            assert await client.is_closed_by_server()

    run(scenario)


def served_certificate(context: TlsContext, authority: Path) -> bytes:
    """What a newcomer is shown."""
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    with context.wrap(ours) as server, theirs:
        client = ssl.create_default_context(cafile=str(authority))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        side = client.wrap_bio(incoming, outgoing, server_hostname="localhost")
        theirs.setblocking(False)
        while True:
            try:
                side.do_handshake()
                break
            except ssl.SSLWantReadError:
                theirs.sendall(outgoing.read())
            with suppress(ssl.SSLWantReadError):
                server.do_handshake()
            incoming.write(theirs.recv(1 << 16))
        shown = side.getpeercert(binary_form=True)
    assert shown is not None
    return shown


def test_a_certificate_can_be_replaced_for_connections_to_come(tmp_path: Path) -> None:
    authority = Authority()
    (tmp_path / "authority.pem").write_bytes(authority.pem())
    first, second = authority.issue("broker"), authority.issue("broker")
    store = tmp_path / "server.pem"
    store.write_bytes(first.pem())
    context = TlsContext(TlsSettings(key_store=Store(store, "PEM")))
    assert served_certificate(context, tmp_path / "authority.pem") == der_of(first)
    store.write_bytes(second.pem())
    os.utime(store, ns=(1, 1))
    assert context.files_have_changed
    context.check_replacement(context.settings)
    context.reload()
    assert served_certificate(context, tmp_path / "authority.pem") == der_of(second)


def test_a_replacement_must_keep_the_names_and_be_readable(tmp_path: Path) -> None:
    authority = Authority()
    store = tmp_path / "server.pem"
    store.write_bytes(authority.issue("broker").pem())
    context = TlsContext(TlsSettings(key_store=Store(store, "PEM")))
    store.write_bytes(authority.issue("somebody else").pem())
    with pytest.raises(TlsError, match="subject"):
        context.check_replacement(context.settings)
    store.write_text("nonsense")
    with pytest.raises(TlsError, match=r"server\.pem"):
        context.reload()


def der_of(holder: Holder) -> bytes:
    return ssl.PEM_cert_to_DER_cert(holder.certificate_pem().decode())


def test_a_broker_whose_certificate_its_own_trust_store_rejects_is_found_out(
    tmp_path: Path, files: TlsFiles
) -> None:
    verify_own_certificate(settings_of(files))
    (tmp_path / "other.pem").write_bytes(Authority("another").pem())
    settings = TlsSettings(
        key_store=Store(files.server, "PEM"), trust_store=Store(tmp_path / "other.pem", "PEM")
    )
    with pytest.raises(TlsError, match="not trusted"):
        verify_own_certificate(settings)


def test_an_encrypted_key_needs_its_password(tmp_path: Path) -> None:
    store = tmp_path / "server.pem"
    store.write_bytes(Authority().issue("broker").pem("secret"))
    TlsContext(TlsSettings(key_store=Store(store, "PEM", key_password="secret")))
    for wrong in ("other", None):
        with pytest.raises(TlsError, match=r"server\.pem"):
            TlsContext(TlsSettings(key_store=Store(store, "PEM", key_password=wrong)))


@pytest.mark.parametrize(
    ("protocols", "suites", "offered", "is_let_in"),
    [
        (("TLSv1.2",), (), ssl.TLSVersion.TLSv1_3, False),
        (("TLSv1.3",), (), ssl.TLSVersion.TLSv1_2, False),
        (("TLSv1.2", "TLSv1.3"), (), ssl.TLSVersion.TLSv1_3, True),
        (
            ("TLSv1.2", "TLSv1.3"),
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",),
            ssl.TLSVersion.TLSv1_3,
            False,
        ),
        (
            ("TLSv1.2", "TLSv1.3"),
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",),
            ssl.TLSVersion.TLSv1_2,
            True,
        ),
        (("TLSv1.2", "TLSv1.3"), ("TLS_AES_128_GCM_SHA256",), ssl.TLSVersion.TLSv1_2, False),
        (
            ("TLSv1.2",),
            ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",),  # the key is of another kind
            ssl.TLSVersion.TLSv1_2,
            False,
        ),
    ],
)
def test_versions_and_cipher_suites_are_those_of_the_settings(
    files: TlsFiles,
    protocols: tuple[str, ...],
    suites: tuple[str, ...],
    offered: ssl.TLSVersion,
    is_let_in: bool,
) -> None:
    async def scenario() -> None:
        context = TlsContext(
            TlsSettings(
                key_store=Store(files.server, "PEM"),
                enabled_protocols=protocols,
                cipher_suites=suites,
            )
        )
        client_side = client_context(files)
        client_side.minimum_version = client_side.maximum_version = offered
        async with serving(echo, context) as server:
            if is_let_in:
                client = await Client.connect(server, "SSL", client_side)
                client.send(b"hello")
                assert await client.receive() == b"hello"
            else:
                with pytest.raises((ssl.SSLError, ConnectionError)):
                    await Client.connect(server, "SSL", client_side)

    run(scenario)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (TlsSettings(), "ssl.keystore.location"),
        (TlsSettings(key_store=Store(Path("/nowhere.jks"))), "/nowhere.jks: No such file"),
        (TlsSettings(key_store=Store(Path("/x"), "BKS")), "type BKS cannot be read"),
    ],
)
def test_settings_that_cannot_work_are_named(settings: TlsSettings, name: str) -> None:
    with pytest.raises(TlsError, match=name):
        TlsContext(settings)


def test_unknown_versions_and_suites_are_named(files: TlsFiles) -> None:
    store = Store(files.server, "PEM")
    with pytest.raises(TlsError, match="SSLv9"):
        TlsContext(TlsSettings(key_store=store, enabled_protocols=("SSLv9",)))
    with pytest.raises(TlsError, match="NO_SUCH"):
        TlsContext(TlsSettings(key_store=store, cipher_suites=("NO_SUCH",)))
