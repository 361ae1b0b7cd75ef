"""Settings of the server as a whole: ZooKeeper, identity, threads, listeners and connections."""

from broker.settings.definition import at_least
from broker.settings.kinds import (
    CLUSTER_WIDE,
    HIGH,
    INT_MAX,
    LOW,
    MEDIUM,
    PER_BROKER,
    boolean,
    class_name,
    integer,
    long,
    password,
    string,
    words,
)


class ZooKeeperTable:
    zookeeper_connect = string(
        None,
        HIGH,
        "Ensemble as host:port,...[/chroot]; without it the broker starts a ZooKeeper itself.",
    )
    zookeeper_session_timeout_ms = integer(
        18000, HIGH, "Silence after which ZooKeeper declares this broker dead."
    )
    zookeeper_connection_timeout_ms = integer(
        None, HIGH, "How long to wait for a connection; the session timeout when absent."
    )
    zookeeper_sync_time_ms = integer(
        2000, LOW, "How far a ZooKeeper follower may lag behind its leader.", idle=True
    )
    zookeeper_set_acl = boolean(
        False, HIGH, "Protect the znodes that the broker creates with ACLs.", idle=True
    )
    zookeeper_max_in_flight_requests = integer(
        10,
        HIGH,
        "Requests sent to ZooKeeper without an answer before the client waits.",
        check=at_least(1),
    )
    zookeeper_ssl_client_enable = boolean(False, MEDIUM, "Speak TLS with ZooKeeper.", idle=True)
    zookeeper_client_cnxn_socket = string(
        None,
        MEDIUM,
        "Java class of the ZooKeeper client's socket; TLS needs the Netty one.",
        idle=True,
        name="zookeeper.clientCnxnSocket",
    )
    zookeeper_ssl_keystore_location = string(
        None, MEDIUM, "Key store with the client certificate for ZooKeeper.", idle=True
    )
    zookeeper_ssl_keystore_password = password(MEDIUM, "Password of that key store.", idle=True)
    zookeeper_ssl_keystore_type = string(
        None, MEDIUM, "Format of that key store; told by the file's ending when absent.", idle=True
    )
    zookeeper_ssl_truststore_location = string(
        None,
        MEDIUM,
        "Trust store with the authorities that may sign ZooKeeper's certificate.",
        idle=True,
    )
    zookeeper_ssl_truststore_password = password(MEDIUM, "Password of that trust store.", idle=True)
    zookeeper_ssl_truststore_type = string(
        None,
        MEDIUM,
        "Format of that trust store; told by the file's ending when absent.",
        idle=True,
    )
    zookeeper_ssl_protocol = string("TLSv1.2", LOW, "TLS version offered to ZooKeeper.", idle=True)
    zookeeper_ssl_enabled_protocols = words(
        None, LOW, "TLS versions accepted from ZooKeeper.", idle=True
    )
    zookeeper_ssl_cipher_suites = words(
        None, LOW, "TLS cipher suites accepted from ZooKeeper.", idle=True
    )
    zookeeper_ssl_endpoint_identification_algorithm = string(
        "HTTPS", LOW, "How ZooKeeper's host name is checked; empty switches it off.", idle=True
    )
    zookeeper_ssl_crl_enable = boolean(
        False, LOW, "Check ZooKeeper's certificate against revocation lists.", idle=True
    )
    zookeeper_ssl_ocsp_enable = boolean(
        False, LOW, "Check ZooKeeper's certificate by OCSP.", idle=True
    )


class ServerTable:
    broker_id_generation_enable = boolean(
        True, MEDIUM, "Let ZooKeeper hand out an id where broker.id is not set."
    )
    reserved_broker_max_id = integer(
        1000,
        MEDIUM,
        "Largest id that may be set by hand; generated ids lie above.",
        check=at_least(0),
    )
    broker_id = integer(-1, HIGH, "This broker's number in the cluster; -1 asks for one.")
    message_max_bytes = integer(
        1048588,
        HIGH,
        "Largest record batch accepted, in bytes, as it arrives.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    num_network_threads = integer(
        3,
        HIGH,
        "Processors that share a listener's connections.",
        check=at_least(1),
        dynamic=CLUSTER_WIDE,
    )
    num_io_threads = integer(
        8, HIGH, "Workers that handle requests.", check=at_least(1), dynamic=CLUSTER_WIDE
    )
    num_replica_alter_log_dirs_threads = integer(
        None,
        HIGH,
        "Movers of replicas between log directories; one per directory when absent.",
        idle=True,
    )
    background_threads = integer(
        10,
        HIGH,
        "Threads for file deletion and other background work.",
        check=at_least(1),
        dynamic=CLUSTER_WIDE,
        idle=True,
    )
    queued_max_requests = integer(
        500,
        HIGH,
        "Requests that may wait for a worker before reading from sockets stops.",
        check=at_least(1),
    )
    queued_max_request_bytes = long(
        -1,
        MEDIUM,
        "Bytes of waiting requests before reading from sockets stops; -1: no limit.",
    )
    request_timeout_ms = integer(
        30000, HIGH, "How long a request to another broker may take.", idle=True
    )
    authorizer_class_name = string(
        "", LOW, "Class that decides who may do what; empty allows everything.", idle=True
    )
    broker_rack = string(None, MEDIUM, "Rack of this broker, for spreading replicas.")
    auto_create_topics_enable = boolean(
        True, HIGH, "Create a topic when a client first asks for it."
    )
    delete_topic_enable = boolean(True, HIGH, "Allow topics to be deleted.")
    num_partitions = integer(
        1, MEDIUM, "Partitions of a topic that is created without a number.", check=at_least(1)
    )
    default_replication_factor = integer(
        1, MEDIUM, "Replicas of a topic that is created without a number."
    )
    create_topic_policy_class_name = class_name(LOW, "Class that may refuse new topics.", idle=True)
    alter_config_policy_class_name = class_name(
        LOW, "Class that may refuse changes of configuration.", idle=True
    )


class NetworkTable:
    port = integer(9092, HIGH, "Port to listen on where listeners is not set (deprecated).")
    host_name = string("", HIGH, "Host to listen on where listeners is not set (deprecated).")
    listeners = string(
        None,
        HIGH,
        "Where to listen, as NAME://host:port,...; no host: all interfaces, port 0: a free one.",
        dynamic=PER_BROKER,
    )
    advertised_host_name = string(
        None, HIGH, "Host told to clients where advertised.listeners is not set (deprecated)."
    )
    advertised_port = integer(
        None, HIGH, "Port told to clients where advertised.listeners is not set (deprecated)."
    )
    advertised_listeners = string(
        None,
        HIGH,
        "Addresses told to clients, where they differ from listeners.",
        dynamic=PER_BROKER,
    )
    listener_security_protocol_map = string(
        "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL",
        LOW,
        "Security protocol of each listener, as NAME:PROTOCOL,...",
        dynamic=PER_BROKER,
    )
    control_plane_listener_name = string(
        None, HIGH, "Listener reserved for the controller's requests."
    )
    security_inter_broker_protocol = string(
        "PLAINTEXT", MEDIUM, "Security protocol between brokers."
    )
    inter_broker_listener_name = string(None, MEDIUM, "Listener that brokers use among themselves.")
    socket_send_buffer_bytes = integer(
        100 * 1024, HIGH, "SO_SNDBUF of server sockets; -1 leaves the system's default."
    )
    socket_receive_buffer_bytes = integer(
        100 * 1024, HIGH, "SO_RCVBUF of server sockets; -1 leaves the system's default."
    )
    socket_request_max_bytes = integer(
        100 * 1024 * 1024, HIGH, "Largest request accepted, in bytes.", check=at_least(1)
    )
    max_connections_per_ip = integer(
        INT_MAX,
        MEDIUM,
        "Connections allowed from one address.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    max_connections_per_ip_overrides = string(
        "",
        MEDIUM,
        "Other limits for some addresses, as host:count,...",
        dynamic=CLUSTER_WIDE,
    )
    max_connections = integer(
        INT_MAX,
        MEDIUM,
        "Connections allowed in all.",
        check=at_least(0),
        dynamic=CLUSTER_WIDE,
    )
    connections_max_idle_ms = long(
        10 * 60 * 1000, MEDIUM, "Idle time after which a connection is closed."
    )
    connection_failed_authentication_delay_ms = integer(
        100,
        LOW,
        "Pause before a connection that failed to authenticate is closed.",
        check=at_least(0),
        idle=True,
    )
