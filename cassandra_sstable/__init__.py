"""The command cassandra-sstable inspects SSTables without any server.

As a library it finds the tables of SSTables: docs/library.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cassandra_sstable.schemas import Schemas, read_data_folder, with_dropped

__all__ = ["Schemas", "read_data_folder", "with_dropped"]

# Loaded when they are first used: a program that needs one module loads no other.
_MODULES = {
    "schemas": ("Schemas", "read_data_folder", "with_dropped"),
}


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(name)


def __dir__() -> list[str]:
    return __all__
