"""The command cassandra-commitlog inspects commit log segments without any server.

As a library it decodes the mutations of segments with the schemas in these segments: docs/library.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.public_names import loader

if TYPE_CHECKING:
    from cassandra_storage.commands.commitlog.mutations import Damaged, Decoded, MutationReader, SizedUpdate, Undecoded
    from cassandra_storage.commands.commitlog.schemas import Schemas
    from cassandra_storage.commands.commitlog.segments import SegmentEnd, SegmentFile, SegmentWalk, find_segments

__all__ = [
    "Damaged",
    "Decoded",
    "MutationReader",
    "Schemas",
    "SegmentEnd",
    "SegmentFile",
    "SegmentWalk",
    "SizedUpdate",
    "Undecoded",
    "find_segments",
]

# Loaded when they are first used: a program that needs one module loads no other.
_MODULES = {
    "mutations": ("Damaged", "Decoded", "MutationReader", "SizedUpdate", "Undecoded"),
    "schemas": ("Schemas",),
    "segments": ("SegmentEnd", "SegmentFile", "SegmentWalk", "find_segments"),
}

__getattr__ = loader(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
