"""Schemas under ids that another registry has given them, and sequences that go on after such ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import Integer, func, insert, select

from schematizer.model.registry_queries import digest_of, ids_of
from schematizer.model.registry_tables import schemas

if TYPE_CHECKING:
    from sqlalchemy import Connection, Table


class OtherSchemaError(ValueError):
    """The id has another schema here."""


def add_schema(connection: Connection, schema_id: int, canonical: str) -> None:
    """Store the schema under the id, unless it is there. OtherSchemaError if the id has another one."""
    known = connection.execute(select(schemas.c.text).where(schemas.c.id == schema_id)).scalar()
    if known == canonical:
        return
    if known is not None:
        raise OtherSchemaError(schema_id)
    digest = digest_of(canonical)
    same_as = next(iter(ids_of(connection, digest)), None)
    if same_as is not None:
        digest = digest_of(f"{schema_id} {canonical}")
    connection.execute(insert(schemas).values(id=schema_id, digest=digest, text=canonical, same_as=same_as))


def follow_ids(connection: Connection, table: Table = schemas) -> None:
    """Let new ids be higher than those that were given. Other databases than PostgreSQL do so themselves."""
    key = list(table.primary_key.columns)
    if connection.dialect.name != "postgresql" or len(key) != 1 or not isinstance(key[0].type, Integer):
        return
    highest = connection.execute(select(func.max(key[0]))).scalar()
    if highest is not None:
        sequence = func.pg_get_serial_sequence(table.name, key[0].name)
        connection.execute(select(func.setval(sequence, highest)))
