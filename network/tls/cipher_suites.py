"""Names of cipher suites: Kafka's settings use the IANA's, OpenSSL has its own."""

import re
from collections.abc import Iterable

TLS_1_3_SUITES = frozenset(
    {
        "TLS_AES_128_GCM_SHA256",
        "TLS_AES_256_GCM_SHA384",
        "TLS_CHACHA20_POLY1305_SHA256",
        "TLS_AES_128_CCM_SHA256",
        "TLS_AES_128_CCM_8_SHA256",
    }
)
_CBC = re.compile(r"(AES\d+|CAMELLIA\d+|ARIA\d+)-CBC")


def openssl_name(suite: str) -> str:
    """ECDHE-RSA-AES128-GCM-SHA256 for TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256; a name that is
    not the IANA's stays as it is."""
    exchange, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    if not separator:
        return suite
    cipher = re.sub(r"(AES|CAMELLIA|ARIA)_(\d+)", r"\1\2", cipher).replace("_", "-")
    cipher = _CBC.sub(r"\1", cipher)
    if "CHACHA20-POLY1305" in cipher:
        cipher = "CHACHA20-POLY1305"
    elif "CCM" in cipher:
        cipher = cipher.removesuffix("-SHA256").replace("CCM-8", "CCM8")
    exchange = exchange.replace("_", "-")
    return cipher if exchange == "RSA" else f"{exchange}-{cipher}"


def split_suites(suites: Iterable[str]) -> tuple[list[str], bool]:
    """The suites up to TLS 1.2 by OpenSSL's names, and whether any of TLS 1.3 is among them."""
    older = [openssl_name(one) for one in suites if one not in TLS_1_3_SUITES]
    return older, any(one in TLS_1_3_SUITES for one in suites)
