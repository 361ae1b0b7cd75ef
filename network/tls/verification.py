"""Whether a broker's certificate would satisfy other brokers: a handshake with itself, in memory.

Kafka checks this for the listener between brokers before it starts, so that a wrong trust store is
found by the operator and not by the cluster.
"""

import ssl

from network.tls.context import TlsError, TlsSettings, make_client_context, make_server_context

MAX_ROUNDS = 10


def verify_own_certificate(settings: TlsSettings) -> None:
    """Raises TlsError. The name of the host is not checked."""
    client_context = make_client_context(settings)
    client_context.check_hostname = False
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = client_context.wrap_bio(to_client, to_server)
    server = make_server_context(settings).wrap_bio(to_server, to_client, server_side=True)
    waiting = [client, server]
    for _ in range(MAX_ROUNDS):
        waiting = [side for side in waiting if not _is_done(side)]
        if not waiting:
            return
    raise TlsError("ssl.truststore.location: the handshake with the own certificate does not end")


def _is_done(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    except ssl.SSLError as error:
        raise TlsError(
            f"ssl.truststore.location: the broker's own certificate is not trusted by it: {error}"
        ) from error
    return True
