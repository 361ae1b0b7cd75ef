"""Settings of security: TLS, SASL, delegation tokens and the encoding of stored passwords."""

from broker.settings.definition import at_least, one_of
from broker.settings.kinds import (
    LOW,
    MEDIUM,
    PER_BROKER,
    class_name,
    double,
    integer,
    long,
    password,
    short,
    string,
    words,
)


class TlsTable:
    security_providers = string(None, LOW, "Java security providers to install.", idle=True)
    principal_builder_class = class_name(
        MEDIUM, "Class that names the client behind a connection.", dynamic=PER_BROKER, idle=True
    )
    ssl_protocol = string("TLSv1.2", MEDIUM, "TLS version offered.", dynamic=PER_BROKER, idle=True)
    ssl_provider = string(None, MEDIUM, "Java TLS provider.", dynamic=PER_BROKER, idle=True)
    ssl_enabled_protocols = words(
        ("TLSv1.2",), MEDIUM, "TLS versions accepted.", dynamic=PER_BROKER
    )
    ssl_keystore_type = string("JKS", MEDIUM, "Format of the key store.", dynamic=PER_BROKER)
    ssl_keystore_location = string(
        None, MEDIUM, "Key store with the broker's certificate.", dynamic=PER_BROKER
    )
    ssl_keystore_password = password(MEDIUM, "Password of the key store.", dynamic=PER_BROKER)
    ssl_key_password = password(
        MEDIUM, "Password of the private key in the key store.", dynamic=PER_BROKER
    )
    ssl_truststore_type = string("JKS", MEDIUM, "Format of the trust store.", dynamic=PER_BROKER)
    ssl_truststore_location = string(
        None,
        MEDIUM,
        "Trust store with the authorities that may sign clients' certificates.",
        dynamic=PER_BROKER,
    )
    ssl_truststore_password = password(MEDIUM, "Password of the trust store.", dynamic=PER_BROKER)
    ssl_keymanager_algorithm = string(
        "SunX509", MEDIUM, "Java key manager's algorithm.", dynamic=PER_BROKER, idle=True
    )
    ssl_trustmanager_algorithm = string(
        "PKIX", MEDIUM, "Java trust manager's algorithm.", dynamic=PER_BROKER, idle=True
    )
    ssl_endpoint_identification_algorithm = string(
        "https",
        LOW,
        "How the other side's host name is checked; empty switches it off.",
        dynamic=PER_BROKER,
    )
    ssl_secure_random_implementation = string(
        None, LOW, "Java source of random numbers for TLS.", dynamic=PER_BROKER, idle=True
    )
    ssl_client_auth = string(
        "none",
        MEDIUM,
        "Whether clients must show a certificate.",
        check=one_of("required", "requested", "none"),
        dynamic=PER_BROKER,
    )
    ssl_cipher_suites = words(
        (),
        MEDIUM,
        "TLS cipher suites accepted; empty means the usual ones.",
        dynamic=PER_BROKER,
    )
    ssl_principal_mapping_rules = string(
        "DEFAULT", LOW, "Rules that turn a certificate's subject into a user's name.", idle=True
    )


class SaslTable:
    connections_max_reauth_ms = long(
        0, MEDIUM, "How long a SASL login lasts; 0 means as long as the connection.", idle=True
    )
    sasl_mechanism_inter_broker_protocol = string(
        "GSSAPI", MEDIUM, "SASL mechanism between brokers.", dynamic=PER_BROKER, idle=True
    )
    sasl_jaas_config = password(
        MEDIUM, "Login settings of SASL in JAAS form.", dynamic=PER_BROKER, idle=True
    )
    sasl_enabled_mechanisms = words(
        ("GSSAPI",), MEDIUM, "SASL mechanisms offered to clients.", dynamic=PER_BROKER, idle=True
    )
    sasl_server_callback_handler_class = class_name(
        MEDIUM, "Class that checks SASL logins of clients.", idle=True
    )
    sasl_client_callback_handler_class = class_name(
        MEDIUM, "Class that answers SASL questions when this broker logs in.", idle=True
    )
    sasl_login_class = class_name(MEDIUM, "Class that performs the login.", idle=True)
    sasl_login_callback_handler_class = class_name(
        MEDIUM, "Class that answers the questions of the login.", idle=True
    )
    sasl_kerberos_service_name = string(
        None, MEDIUM, "Kerberos name under which brokers run.", dynamic=PER_BROKER, idle=True
    )
    sasl_kerberos_kinit_cmd = string(
        "/usr/bin/kinit", MEDIUM, "Path of kinit.", dynamic=PER_BROKER, idle=True
    )
    sasl_kerberos_ticket_renew_window_factor = double(
        0.80,
        MEDIUM,
        "Share of a ticket's life after which it is renewed.",
        dynamic=PER_BROKER,
        idle=True,
    )
    sasl_kerberos_ticket_renew_jitter = double(
        0.05, MEDIUM, "Random share added to that time.", dynamic=PER_BROKER, idle=True
    )
    sasl_kerberos_min_time_before_relogin = long(
        60 * 1000, MEDIUM, "Shortest time between two logins.", dynamic=PER_BROKER, idle=True
    )
    sasl_kerberos_principal_to_local_rules = words(
        ("DEFAULT",),
        MEDIUM,
        "Rules that turn a Kerberos principal into a user's name.",
        dynamic=PER_BROKER,
        idle=True,
    )
    sasl_login_refresh_window_factor = double(
        0.80,
        MEDIUM,
        "Share of a token's life after which it is refreshed.",
        dynamic=PER_BROKER,
        idle=True,
    )
    sasl_login_refresh_window_jitter = double(
        0.05, MEDIUM, "Random share added to that time.", dynamic=PER_BROKER, idle=True
    )
    sasl_login_refresh_min_period_seconds = short(
        60, MEDIUM, "Shortest time between two refreshes.", dynamic=PER_BROKER, idle=True
    )
    sasl_login_refresh_buffer_seconds = short(
        300,
        MEDIUM,
        "Time before a token's end by which it is refreshed.",
        dynamic=PER_BROKER,
        idle=True,
    )


class SecretsTable:
    delegation_token_master_key = password(
        MEDIUM, "Key that signs delegation tokens; without it there are none.", idle=True
    )
    delegation_token_max_lifetime_ms = long(
        7 * 24 * 60 * 60 * 1000,
        MEDIUM,
        "Age at which a token ends for good.",
        check=at_least(1),
        idle=True,
    )
    delegation_token_expiry_time_ms = long(
        24 * 60 * 60 * 1000,
        MEDIUM,
        "How long a token is valid without renewal.",
        check=at_least(1),
        idle=True,
    )
    delegation_token_expiry_check_interval_ms = long(
        60 * 60 * 1000, LOW, "How often expired tokens are removed.", check=at_least(1), idle=True
    )
    password_encoder_secret = password(
        MEDIUM, "Secret with which passwords in ZooKeeper are encoded."
    )
    password_encoder_old_secret = password(
        MEDIUM, "The secret before the current one, for the change-over."
    )
    password_encoder_keyfactory_algorithm = string(
        None, LOW, "Key derivation for encoding passwords."
    )
    password_encoder_cipher_algorithm = string(
        "AES/CBC/PKCS5Padding", LOW, "Cipher for encoding passwords."
    )
    password_encoder_key_length = integer(
        128, LOW, "Key length for encoding passwords, in bits.", check=at_least(8)
    )
    password_encoder_iterations = integer(
        4096, LOW, "Rounds of the key derivation.", check=at_least(1024)
    )
