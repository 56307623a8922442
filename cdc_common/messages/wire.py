"""The Confluent wire format: 0x00, the registry's schema id (4 bytes, big-endian), Avro binary."""

from __future__ import annotations

from struct import Struct

from cdc_common.messages.errors import MessageError

_HEADER = Struct(">BI")
_MAGIC = 0
HEADER_SIZE = _HEADER.size


def header(schema_id: int) -> bytes:
    return _HEADER.pack(_MAGIC, schema_id)


def schema_id(message: bytes) -> int:
    """The schema id of a message; MessageError if it is not in this format."""
    if len(message) < HEADER_SIZE or message[0] != _MAGIC:
        raise MessageError("a message that is not in the Confluent wire format")
    number: int = _HEADER.unpack_from(message)[1]
    return number
