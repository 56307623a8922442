"""The settings of `cassandra-warehouse`."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic needs it
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr
from pydantic_core import PydanticCustomError

from cdc_common.settings import shared
from cdc_common.settings.base import Conflict
from stream_runtime.settings import ChosenTopicsSettings

if TYPE_CHECKING:
    from collections.abc import Iterator


def _check_target(target: str) -> str:
    if target.startswith("duckdb:") and not target.startswith("duckdb:///"):
        raise PydanticCustomError("target", "The file of DuckDB is named by its path: duckdb:///FOLDER/FILE")
    return target


class WarehouseSettings(ChosenTopicsSettings):
    """The Spark job of `cassandra-warehouse`, which loads topics into a warehouse (docs/guides/warehouse.md)."""

    group_id: Annotated[
        str,
        Field(
            description="Name of the job. Positions are in the warehouse, and not in a consumer group.", min_length=1
        ),
    ] = "cassandra-warehouse"
    operations_port: Annotated[int, Field(description="Port of that address; 0 for none.", ge=0, le=65535)] = 9476
    target: Annotated[
        str,
        Field(
            description="The warehouse: duckdb:///FOLDER/FILE for a file of DuckDB, "
            "postgresql://USER@HOST/DATABASE, redshift://USER@HOST/DATABASE, or a URL of a target that another "
            "package has.",
            pattern="^[a-z][a-z0-9+.-]*://.",
        ),
        AfterValidator(_check_target),
    ] = "duckdb:////var/lib/cassandra-warehouse/warehouse.duckdb"
    password: Annotated[SecretStr, Field(description="Password of the warehouse's user.")] = SecretStr("")
    password_file: Annotated[Path | None, Field(description="File that holds the password.")] = None
    deployment: Annotated[
        str,
        Field(
            description="Environment of topic files (`topics apply`) whose topics name this warehouse, and are loaded "
            "too, as their files say; empty for none. The registry knows them."
        ),
    ] = ""
    name: Annotated[str, Field(description="Name of this warehouse in topic files.", pattern=r"^\S*$")] = ""
    form: Annotated[
        Literal["current", "changes", "history"],
        Field(
            description="Form of the tables: the rows as they are; each change, in `TABLE__changes`; or each version "
            "of a row and when it was valid, in `TABLE__history`. A topic file may choose another one for its topic."
        ),
    ] = "current"
    deletes: Annotated[
        Literal["remove", "mark"],
        Field(
            description="What a deletion does in the form `current`: `remove` the row, or keep it as it was, with the "
            "time of the deletion in `_deleted_at`."
        ),
    ] = "remove"
    deleted_days: Annotated[
        float,
        Field(
            description="Time for which `TABLE__deleted` keeps the keys of deleted rows (days); 0 for always. Older "
            "versions of a row must not come later than this.",
            ge=0,
        ),
    ] = 0.0
    state_schema: Annotated[
        str,
        Field(
            description="Schema of the warehouse with the positions of all tables. Jobs that load different topics may "
            "share it.",
            pattern="^[a-z_][a-z0-9_]*$",
        ),
    ] = "cdc_warehouse"
    default_schema: Annotated[
        str, Field(description="Schema of tables whose topics have names of one part.", pattern="^[a-z_][a-z0-9_]*$")
    ] = "topics"
    load_rows: Annotated[int, Field(description="Number of messages of a table after which they are loaded.", ge=1)] = (
        100_000
    )
    load_bytes: Annotated[
        int, Field(description="Size of a table's messages after which they are loaded (bytes).", ge=1)
    ] = 64 * 1024 * 1024
    load_seconds: Annotated[
        float, Field(description="Time after the first message at which messages are loaded (s).", ge=0)
    ] = 1.0
    location: Annotated[
        str,
        Field(
            description="Folder of the objects that Redshift copies: s3://bucket/folder. Options follow a `?`: region, "
            "scheme, endpoint_override, path_style. `cassandra-warehouse write` stores them."
        ),
    ] = ""
    iam_role: Annotated[
        str,
        Field(
            description="Role with which Redshift reads the objects: its ARN, or `default`.",
            pattern="^(default|arn:aws[a-z-]*:iam::[0-9]+:role/[A-Za-z0-9+=,.@/_-]+)$",
        ),
    ] = "default"
    signals_prefix: Annotated[
        str,
        Field(
            description="Prefix of the topics of signals: each topic has one, PREFIX.TOPIC, with as many partitions. "
            "They are created with unlimited retention.",
            pattern="^[A-Za-z0-9._-]+$",
        ),
    ] = "cdc.warehouse.signals"
    load_signals: Annotated[
        int, Field(description="Number of signals of a table after which their objects are copied.", ge=1)
    ] = 100
    load_signal_seconds: Annotated[
        float, Field(description="Time after the first signal at which objects are copied (s).", ge=0)
    ] = 10.0
    on_value_refused: Annotated[
        Literal["stop", "null"],
        Field(
            description="What a value does that the warehouse's type cannot hold: `stop` its table, or become null, "
            "which is counted."
        ),
    ] = "stop"
    personal_data: Annotated[
        Literal["refuse", "leave_out", "load"],
        Field(
            description="What is done with fields that the catalogue of cassandra-schematizer marks as personal: "
            "`refuse` stops their table, `leave_out` makes no columns of them, and `load` loads them."
        ),
    ] = "refuse"
    lock_seconds: Annotated[
        float,
        Field(
            description="Time for which a load waits for a file of DuckDB that another process has open, or for locks "
            "of PostgreSQL (s).",
            gt=0,
        ),
    ] = 30.0

    def conflicts(self, _shared: shared.Settings) -> Iterator[Conflict]:
        """Settings that have no effect."""
        if bool(self.deployment) != bool(self.name):
            lone, other = ("deployment", "name") if self.deployment else ("name", "deployment")
            why = f"has no effect: warehouse.{other} is empty"
            yield Conflict(f"warehouse.{lone}", why, f"Set warehouse.{other}, or remove it.")
        if self.deletes == "mark" and self.form != "current":
            yield Conflict("warehouse.deletes", f'has no effect: warehouse.form is "{self.form}"', "Remove it.")
        if self.location and self.target.startswith(("duckdb:", "postgresql:")):
            yield Conflict("warehouse.location", "has no effect: warehouse.target copies no objects", "Remove it.")
        if self.target.startswith("duckdb:"):
            why = "has no effect: warehouse.target is a file of DuckDB"
            if self.password_file is not None:
                yield Conflict("warehouse.password_file", why, "Remove it.")
            elif self.password.get_secret_value():
                yield Conflict("warehouse.password", why, "Remove it.")


class Settings(shared.Settings):
    """The tables of cdc.toml that the warehouse reads."""

    warehouse: WarehouseSettings = WarehouseSettings()
