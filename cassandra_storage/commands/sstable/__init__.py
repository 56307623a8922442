"""The command cassandra-sstable inspects SSTables without any server.

As a library it finds the tables of SSTables: docs/library.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cassandra_storage.public_names import loader

if TYPE_CHECKING:
    from cassandra_storage.commands.sstable.schemas import Schemas, read_data_folder, with_dropped

__all__ = ["Schemas", "read_data_folder", "with_dropped"]

# Loaded when they are first used: a program that needs one module loads no other.
_MODULES = {
    "schemas": ("Schemas", "read_data_folder", "with_dropped"),
}

__getattr__ = loader(__name__, _MODULES)


def __dir__() -> list[str]:
    return __all__
