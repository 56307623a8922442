"""The settings of a running stack as a file, so that every command joins it: `--config .run/servers.toml`."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING

from cdc_common.settings.load import load_settings
from dev.local_stack.servers.addresses import replace_file, servers_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dev.local_stack.servers.programs import Setting


def settings_file() -> Path:
    """Return the path of the settings file, beside the file of the addresses."""
    return servers_file().with_suffix(".toml")


def write_settings(settings: Mapping[str, Setting]) -> Path:
    """`settings` are by `table.key`, with values as flags take them. The file has no secrets: the stack has none."""
    with NamedTemporaryFile(suffix=".toml") as empty:  # or a cdc.toml of the current folder would count
        loaded = load_settings(Path(empty.name), settings).settings
    tables: dict[str, list[str]] = {}
    for name in sorted(settings):
        table, key = name.split(".", 1)
        value = getattr(getattr(loaded, table), key)
        tables.setdefault(table, []).append(f"{key} = {json.dumps(value, default=str)}")
    text = "\n".join(f"[{table}]\n" + "\n".join(lines) + "\n" for table, lines in tables.items())
    return replace_file(settings_file(), text)


def remove_settings() -> None:
    with suppress(FileNotFoundError):
        settings_file().unlink()
