"""Writes docs/configuration.md from cdc_program/settings: `python -m cdc_program.docs`."""

from __future__ import annotations

from pathlib import Path

from cdc_program.describe import Setting, settings_of, table_model
from cdc_program.settings import Settings

CONFIGURATION = Path(__file__).resolve().parent.parent / "docs" / "configuration.md"

_INTRODUCTION = """\
# Configuration

<!-- Made by `python -m cdc_program.docs` from cdc_program/settings; do not edit. -->

All programs read one TOML file: the one that `--config` names, else the one that the environment variable `CDC_CONFIG`
names, else `./cdc.toml` if it is there. Over the file goes the environment, `CDC_<TABLE>__<KEY>`, and over the
environment go flags: `--set TABLE.KEY=VALUE` for any setting, and those that a command's `--help` lists.

```toml
[kafka]
bootstrap_servers = "kafka1:9092,kafka2:9092"
sasl_password_file = "/run/secrets/kafka"
```

```sh
CDC_KAFKA__TOPIC_PREFIX=shop cassandra-publisher run --set publisher.heartbeat_seconds=5
```

- A key or a variable that is not listed here is an error, and so is a value of another type; the error names the file,
  the variable or the flag. Variables without `__` after `CDC_` are no settings.
- A list is `["a", "b"]` in the file and `a,b` in a variable or a flag. Nothing at all (`""`) is none for a path that
  may be none.
- A secret may be in a file of its own, which the setting `…_file` names. To give both is an error. Prefer the file, or
  the variable, to the flag: other users of the machine see flags.
- `config check` says whether all is valid, `config show` prints each value with its origin (`--json` for programs,
  `--all` for the tables of the other programs), with secrets masked.
"""


def configuration() -> str:
    """The text of docs/configuration.md."""
    return "\n".join([_INTRODUCTION, *(_table(table) for table in Settings.model_fields)])


def _table(table: str) -> str:
    meaning = (table_model(table).__doc__ or "").strip()
    head = [f"## [{table}]", "", *([meaning, ""] if meaning else [])]
    columns = ["| key | type | default | environment | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n".join([*head, *columns, *(_row(known) for known in settings_of(table)), ""])


def _row(known: Setting) -> str:
    default = known.default_text if known.default is None else f"`{known.default_text}`"
    cells = (f"`{known.key}`", known.type_text, default, f"`{known.environment_name}`", known.description)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def main() -> None:
    CONFIGURATION.parent.mkdir(exist_ok=True)
    CONFIGURATION.write_text(configuration(), encoding="utf-8")


if __name__ == "__main__":
    main()
