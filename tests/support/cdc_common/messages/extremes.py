"""The largest, smallest and oddest values of every native type, in Cassandra's bytes."""

from __future__ import annotations


def _hex(*texts: str) -> list[bytes]:
    return [bytes.fromhex(text) for text in texts]


EXTREMES: dict[str, list[bytes]] = {
    "tinyint": _hex("80", "7f", "ff"),
    "smallint": _hex("8000", "7fff"),
    "int": _hex("80000000", "7fffffff", "00000000"),
    "bigint": _hex("8000000000000000", "7fffffffffffffff"),
    "counter": _hex("8000000000000000", "7fffffffffffffff"),
    "timestamp": _hex("8000000000000000", "7fffffffffffffff", "ffffffffffffffff", "fffff4e2f964ac00"),
    "time": _hex("0000000000000000", "00004e94914effff"),
    "date": _hex("00000000", "7fffffff", "80000000", "ffffffff", "7fdd7a86"),
    "float": _hex("80000000", "00000001", "7f7fffff", "7f800000", "ff800000", "7fc00000"),
    "double": _hex("8000000000000000", "0000000000000001", "7fefffffffffffff", "fff0000000000000", "7ff8000000000000"),
    "varint": _hex("00", "80", "0080", "ff" * 9 + "7f", "7f" + "ff" * 999),
    "decimal": _hex("00000000" + "00", "80000000" + "01", "7fffffff" + "ff", "fffffffe" + "0c", "00000002" + "0064"),
    "duration": [
        b"\x00\x00\x00",
        b"\xf0\xff\xff\xff\xff" * 2 + b"\xff" * 9,
        b"\xf0\xff\xff\xff\xfe" * 2 + b"\xff" * 8 + b"\xfe",
    ],
    "inet": _hex(
        "00000000", "ffffffff", "00" * 16, "00" * 15 + "01", "00" * 10 + "ffff01020304", "fe80" + "00" * 13 + "01"
    ),
    "text": [b"", "\0\x7f\u00e9\ud7ff\ue000\uffff\U0010ffff".encode(), b"x" * 70000],
    "ascii": [b"", bytes(range(128))],
    "blob": [b"", bytes(range(256)), bytes(70000)],
    "boolean": _hex("00", "01"),
    "uuid": _hex("00" * 16, "ff" * 16),
    "timeuuid": _hex("00000000000010008080808080808080"),
}
