"""Text as Java and the JSON writer of Kafka would have it, so that dumps compare line by line.

Owns decoding of bytes that may be no UTF-8, quoting for JSON and numbers in hexadecimal. Must not
know records.
"""

import codecs
from typing import Final

_REPLACEMENT: Final = "\ufffd"
_HANDLER: Final = "barnabas-java-replace"

_SURROGATE_LEAD: Final = 0xED

_JSON_ESCAPES: Final = {
    **{code: f"\\u{code:04X}" for code in range(0x20)},
    **{ord(raw): f"\\{short}" for raw, short in zip('\b\t\n\f\r"\\', 'btnfr"\\', strict=True)},
}


def decode_text(data: bytes) -> str:
    """UTF-8; what is none becomes U+FFFD, as often as Java writes it."""
    return data.decode("utf-8", _HANDLER)


def quote_json(text: str) -> str:
    """A JSON string; only what must be escaped is."""
    return f'"{text.translate(_JSON_ESCAPES)}"'


def hexadecimal(data: bytes) -> str:
    """The bytes as one number, without the zeros in front."""
    return f"{int.from_bytes(data):X}" if data else ""


def _replace_as_java(error: UnicodeError) -> tuple[str, int]:
    """Java takes the bytes of a surrogate for one mistake, Python for two or three."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    data, start = error.object, error.start
    end = error.end
    if data[start] == _SURROGATE_LEAD:
        continuation = data[start + 1 : start + 3]
        end = start + 1
        for byte in continuation:
            if byte & 0xC0 != 0x80:
                break
            end += 1
    return _REPLACEMENT, end


codecs.register_error(_HANDLER, _replace_as_java)
