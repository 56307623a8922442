"""The settings: one TOML file, `cdc.toml`, overridden by the environment and then by flags.

A table of cdc.toml is a class of settings: it has each key with its default and its meaning, and configuration.md is
generated from it. The tables that several programs read are in `shared`; a program's own table is in its module
`settings`. `tables` lists all of them by name. `load` reads the sources, and refuses every name and value that
no table knows. Each program reads the tables of its own class `Settings`, which adds to the shared one.
"""

from __future__ import annotations

from cdc_common.settings.shared import (
    CassandraSettings,
    KafkaSettings,
    LogSettings,
    NodeSettings,
    RegistrySettings,
    Settings,
)

__all__ = [
    "CassandraSettings",
    "KafkaSettings",
    "LogSettings",
    "NodeSettings",
    "RegistrySettings",
    "Settings",
]
