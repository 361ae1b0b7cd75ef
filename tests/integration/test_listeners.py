"""Listeners of real brokers: planes, TLS between brokers, and changes while they run."""

import os
import resource
import socket
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from network.protocol import ErrorCode
from tests.support.api import fetch, new_topic, produce, values
from tests.support.broker import BrokerFailed, BrokerProcess
from tests.support.brokers_on_zookeeper import T0, create, on, wait_for_state
from tests.support.certificates import Authority, TlsFiles, make_tls_files
from tests.support.configs import BROKER, LOGGER, SET, change, eventually
from tests.support.raw_client import RawClient, make_batch

OK = (ErrorCode.NONE, None)
KEY_STORES = Path(__file__).parents[1] / "fixtures" / "key-stores"
PROTOCOLS = "CLIENTS:PLAINTEXT,BROKERS:SSL,CONTROL:SSL,SASL_SSL:SASL_SSL"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return make_tls_files(tmp_path_factory.mktemp("tls"))


def free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        probes = [
            stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)
        ]
        return [probe.getsockname()[1] for probe in probes]


class SecuredBroker(BrokerProcess):
    """Clients come in plain; brokers and the controller speak TLS, each on a listener of theirs."""

    def __init__(self, data: Path, files: TlsFiles, extra: dict[str, str]) -> None:
        self.client_port, self.broker_port, self.control_port = free_ports(3)
        self.listeners = (
            f"CLIENTS://127.0.0.1:{self.client_port}"
            f",BROKERS://127.0.0.1:{self.broker_port}"
            f",CONTROL://127.0.0.1:{self.control_port}"
        )
        super().__init__(
            data,
            {
                "listeners": self.listeners,
                "listener.security.protocol.map": PROTOCOLS,
                "inter.broker.listener.name": "BROKERS",
                "control.plane.listener.name": "CONTROL",
                **files.broker_settings,
                **extra,
            },
        )

    def peers_of(self, port: int) -> set[int]:
        """The ports of those who are connected to one of ours."""
        return {
            one.raddr.port
            for one in psutil.Process(self.pid).net_connections("tcp")
            if one.laddr.port == port and one.raddr
        }


def test_the_controller_speaks_tls_to_the_control_plane_of_other_brokers(
    zookeeper_connect: str, files: TlsFiles, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        brokers = []
        for number in range(2):
            extra = on(zookeeper_connect, number)
            broker = SecuredBroker(tmp_path / str(number), files, extra)
            stack.callback(broker.kill)
            broker.start()
            brokers.append(broker)
        create(zookeeper_connect, "t", 1)
        wait_for_state(zookeeper_connect, lambda state: state.leader == 1, T0)
        with RawClient(brokers[1].client_port) as client:
            eventually(
                lambda: produce(client, "t", make_batch(b"secured")).error_code == ErrorCode.NONE
            )
            assert values(fetch(client, "t", 0)) == [b"secured"]
        of_controller = {
            one.laddr.port for one in psutil.Process(brokers[0].pid).net_connections("tcp")
        }
        assert brokers[1].peers_of(brokers[1].control_port) & of_controller
        assert not brokers[1].peers_of(brokers[1].broker_port)


@pytest.fixture
def broker(files: TlsFiles, tmp_path: Path) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path, files, {}) as broker:
        assert isinstance(broker, SecuredBroker)
        yield broker


def is_refused(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.settimeout(0.2)
        try:
            return sock.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True


def test_limits_certificates_and_the_request_log_change_while_the_broker_runs(
    broker: SecuredBroker, files: TlsFiles
) -> None:
    with RawClient(broker.client_port) as client:
        new_topic(client)
        assert not is_refused(broker.client_port)
        assert change(client, BROKER, "0", ("max.connections.per.ip", SET, "1")) == OK
        eventually(lambda: is_refused(broker.client_port))
        overrides = ("max.connections.per.ip.overrides", SET, "127.0.0.1:20")
        assert change(client, BROKER, "0", overrides) == OK
        eventually(lambda: not is_refused(broker.client_port))

        limit = ("listener.name.clients.max.connections", SET, "1")
        assert change(client, BROKER, "0", limit) == OK
        threads = [("num.io.threads", SET, "4"), ("num.network.threads", SET, "2")]
        assert change(client, BROKER, "0", *threads) == OK

        assert change(client, LOGGER, "0", ("network.request", SET, "DEBUG")) == OK
        change(client, BROKER, "0", ("num.io.threads", SET, "5"))
        eventually(lambda: "Completed request: INCREMENTAL_ALTER_CONFIGS" in broker.output)


def test_a_key_store_that_was_written_anew_is_read_when_it_is_set_again(
    files: TlsFiles, tmp_path: Path
) -> None:
    authority = Authority()
    store, trusted = tmp_path / "server.pem", tmp_path / "authority.pem"
    trusted.write_bytes(authority.pem())
    store.write_bytes(authority.issue("broker").pem())
    extra = {"ssl.keystore.location": str(store), "ssl.truststore.location": str(trusted)}
    extra["ssl.client.auth"] = "none"

    location = ("listener.name.brokers.ssl.keystore.location", SET, str(store))
    kind = ("listener.name.brokers.ssl.keystore.type", SET, "PEM")
    extra |= {name: value for name, _set, value in (location, kind)}
    with SecuredBroker(tmp_path / "data", files, extra) as started:
        assert isinstance(started, SecuredBroker)
        address = ("127.0.0.1", started.broker_port)

        def shown() -> str:
            return ssl.get_server_certificate(address, ca_certs=str(trusted))

        first = shown()
        with RawClient(started.client_port) as client:
            second = authority.issue("broker")
            store.write_bytes(second.pem())
            os.utime(store)
            assert shown() == first
            assert change(client, BROKER, "0", location, kind) == OK
            eventually(lambda: shown() == second.certificate_pem().decode())
            store.write_bytes(authority.issue("another name").pem())
            os.utime(store, ns=(1, 1))
            code, message = change(client, BROKER, "0", location, kind)
            assert code == ErrorCode.INVALID_REQUEST
            assert "subject" in (message or "")
            assert shown() == second.certificate_pem().decode()


@pytest.mark.parametrize(
    ("setting", "value", "told"),
    [
        ("ssl.keystore.location", "/nowhere/server.pem", "/nowhere/server.pem: No such file"),
        ("listener.name.brokers.ssl.keystore.type", "BKS", "type BKS cannot be read"),
        ("ssl.cipher.suites", "NO_SUCH_SUITE", "NO_SUCH_SUITE"),
    ],
)
def test_tls_settings_that_cannot_work_stop_the_start_with_one_line(
    files: TlsFiles, tmp_path: Path, setting: str, value: str, told: str
) -> None:
    broker = SecuredBroker(tmp_path, files, {setting: value})
    try:
        with pytest.raises(BrokerFailed, match=told):
            broker.start()
    finally:
        broker.kill()


def test_a_broker_takes_all_the_descriptors_that_it_may_have(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        with BrokerProcess(tmp_path) as broker:
            assert psutil.Process(broker.pid).rlimit(psutil.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("kind", ["jks", "p12"])
def test_key_stores_of_java_are_served_by_the_listener_that_names_them(
    tmp_path: Path, kind: str
) -> None:
    (port,) = free_ports(1)
    own = {
        "ssl.keystore.location": str(KEY_STORES / f"broker.{kind}"),
        "ssl.keystore.password": "store-password",
        "ssl.truststore.location": str(KEY_STORES / f"trust.{kind}"),
        "ssl.truststore.password": "store-password",
    }
    if kind == "jks":
        own["ssl.key.password"] = "key-password"
    overrides = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:{port}",
        **{f"listener.name.ssl.{name}": value for name, value in own.items()},
    }
    expected = (KEY_STORES / f"broker-{kind}.pem").read_text()
    with BrokerProcess(tmp_path, overrides) as broker:
        shown = ssl.get_server_certificate(
            ("127.0.0.1", port), ca_certs=str(KEY_STORES / f"broker-{kind}.pem")
        )
        assert ssl.PEM_cert_to_DER_cert(shown) == ssl.PEM_cert_to_DER_cert(expected)
        assert "listener.name.ssl" not in broker.output, "none of it is called idle"
