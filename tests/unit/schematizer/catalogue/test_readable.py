"""Conditions of queries say of every namespace what grants say of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, MetaData, String, Table, create_engine, insert, select

from schematizer.access import EVERYTHING, NOTHING, Grant, Grants, Role
from schematizer.catalogue.readable import is_readable_namespace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import Connection

NAMES = ("a", "a.b", "a.b.c", "a.bc", "a_b.c", "A.b", "ab", "b", "default")
TABLE = Table("names", MetaData(), Column("name", String))
GRANTS = st.builds(Grant, st.sampled_from(Role), st.sampled_from(("*", *NAMES, *(f"{name}.*" for name in NAMES))))


@pytest.fixture(scope="module")
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as connected:
        TABLE.metadata.create_all(connected)
        connected.execute(insert(TABLE), [{"name": name} for name in NAMES])
        yield connected
    engine.dispose()


def readable(connection: Connection, grants: Grants) -> set[str]:
    return set(connection.scalars(select(TABLE.c.name).where(is_readable_namespace(TABLE.c.name, grants))))


@given(st.lists(GRANTS, max_size=4).map(lambda grants: Grants(tuple(grants))))
def test_the_query_finds_what_grants_allow(connection: Connection, grants: Grants) -> None:
    assert readable(connection, grants) == {name for name in NAMES if grants.allows(Role.READER, name)}


def test_everything_and_nothing(connection: Connection) -> None:
    assert readable(connection, EVERYTHING) == set(NAMES)
    assert readable(connection, NOTHING) == set()
