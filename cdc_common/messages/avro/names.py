"""Avro names for CQL names: Avro allows `[A-Za-z_][A-Za-z0-9_]*`, CQL almost any text between quotes."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING
from unicodedata import ucd_3_2_0 as unicode

if TYPE_CHECKING:
    from collections.abc import Iterable

_VALID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID_CHARACTER = re.compile(r"[^A-Za-z0-9_]|^[0-9]")
_LETTERS = str.maketrans(
    {
        "ß": "ss", "ẞ": "SS", "Æ": "AE", "æ": "ae", "Œ": "OE", "œ": "oe", "Ø": "O", "ø": "o", "Đ": "D", "đ": "d",
        "Ð": "D", "ð": "d", "Þ": "Th", "þ": "th", "Ł": "L", "ł": "l", "ı": "i",  # noqa: RUF001 - it is the letter
    }
)  # fmt: skip
"""Latin letters that Unicode does not decompose into one of ASCII and a mark."""
_HASH_DIGITS = 4


def avro_name(name: str) -> str:
    """The name, as near as Avro allows: letters without their marks, `_` for what is no letter and no digit.

    Such a name ends with `_x` and the first digits of its SHA-256: they keep names apart that read alike. A name with
    letters that are not Latin has each character that Avro does not allow as `_x<hex>_` (as in SQL/XML, ISO 9075-14).
    """
    if not name:
        return "_"
    if _VALID.fullmatch(name):
        return name
    latin = _latin(name)
    if latin is None:
        return _INVALID_CHARACTER.sub(lambda match: f"_x{ord(match[0]):04X}_", name)
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{'_' if latin[0].isdigit() else ''}{latin}_x{digest[:_HASH_DIGITS]}"


def _latin(name: str) -> str | None:
    """The name in ASCII's letters, digits and `_`. None if it has letters of other scripts.

    Unicode's version is fixed: a newer Python must not change a field's name. Characters that it lacks may be letters.
    """
    plain = unicode.normalize("NFKD", name.translate(_LETTERS))
    kept = "".join(character for character in plain if not unicode.combining(character))
    if any(not character.isascii() and unicode.category(character)[0] in "LNC" for character in kept):
        return None
    return re.sub(r"[^A-Za-z0-9_]", "_", kept) or None


def avro_names(names: Iterable[str], taken: frozenset[str] = frozenset()) -> dict[str, str]:
    """CQL name -> Avro name for the fields of one record. All are different, and none is in `taken`.

    Names that Avro allows are assigned first, so that a column added later does not change them. A name that is already
    taken gets underscores appended.
    """
    used = set(taken)
    mapped = {}
    for name in sorted(set(names), key=lambda name: (not _VALID.fullmatch(name), name)):
        candidate = avro_name(name)
        while candidate in used:
            candidate += "_"
        used.add(candidate)
        mapped[name] = candidate
    return mapped


def namespace(*parts: str) -> str:
    """An Avro namespace of dotted parts: a topic prefix, a keyspace, a table, a column, …"""
    return ".".join(avro_name(segment) for part in parts for segment in part.split("."))
