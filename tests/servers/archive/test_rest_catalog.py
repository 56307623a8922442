"""Tables of a REST catalog: the server that Apache Iceberg has for its own tests.

The tests of the registrar run again, with this catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog import load_catalog

from archive.registrar.catalogs import open_tables
from archive.registrar.registrar import Registrar
from archive.settings import ArchiveSettings
from cdc_common.errors.codes import Code
from dev.local_stack.servers.iceberg_rest import IcebergRestServer
from tests.support.archive.archive_program import ArchiveProgram
from tests.support.archive.gated_server import gated
from tests.unit.archive.registrar.test_registrar import (
    TABLE,
    TOPIC_ID,
    archive,
    events,
    fill,
    read_numbers,
    test_a_column_that_becomes_wider,
    test_a_foreign_column_stops_that_table_alone,
    test_a_renamed_field_is_one_column,
    test_a_stale_committer_is_refused,
    test_a_start_begins_where_all_tables_are,
    test_a_start_waits_for_the_table_that_fails,
    test_a_table_gets_the_columns_of_a_newer_schema,
    test_a_table_has_each_event_once,
    test_an_incompatible_schema_gets_another_table,
    test_the_columns_of_every_table_are_the_first,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyiceberg.catalog import Catalog

    from tests.support.archive.archive_run import ArchiveSetup
    from tests.support.archive.scene import Archive

__all__ = [
    "archive",
    "test_a_column_that_becomes_wider",
    "test_a_foreign_column_stops_that_table_alone",
    "test_a_renamed_field_is_one_column",
    "test_a_stale_committer_is_refused",
    "test_a_start_begins_where_all_tables_are",
    "test_a_start_waits_for_the_table_that_fails",
    "test_a_table_gets_the_columns_of_a_newer_schema",
    "test_a_table_has_each_event_once",
    "test_an_incompatible_schema_gets_another_table",
    "test_the_columns_of_every_table_are_the_first",
]
pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]

VARIABLE = "PYICEBERG_CATALOG__LAKE__TOKEN"
TOKEN, WRONG_TOKEN = "the-token-of-the-test", "a-token-that-no-log-has"


@pytest.fixture(scope="module")
def rest() -> Iterator[IcebergRestServer]:
    with IcebergRestServer() as server:
        yield server


@pytest.fixture
def catalog(rest: IcebergRestServer) -> Iterator[Catalog]:
    """The catalog, which is empty again after the test."""
    made = load_catalog("lake", type="rest", uri=rest.uri)
    yield made
    for namespace in made.list_namespaces():
        for table in made.list_tables(namespace):
            made.drop_table(table)
        made.drop_namespace(namespace)


def test_a_catalog_that_is_away_gets_its_files_later(
    rest: IcebergRestServer,
    catalog: Catalog,
    archive: Archive,
) -> None:
    own = ArchiveSettings(catalog_type="rest", catalog_uri=rest.uri)
    registrar = Registrar("lake", open_tables(own, archive.store, TOPIC_ID), archive.store, TOPIC_ID)
    fill(archive, 0, 40)
    registrar.take(events(archive))
    registrar.commit()
    rest.kill()
    fill(archive, 40, 60)
    registrar.take(events(archive, 2))
    registrar.commit()
    assert registrar.errors[TABLE].code is Code.ARCHIVE_TABLE
    rest.start()
    assert read_numbers(catalog) == list(range(40))
    registrar.commit()
    assert registrar.errors == {}
    assert read_numbers(catalog) == list(range(60))


def test_credentials_come_from_the_environment(
    rest: IcebergRestServer, setup: ArchiveSetup, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with gated(rest.port, TOKEN) as uri:
        own = setup.settings(catalog_type="rest", catalog_uri=uri).archive
        monkeypatch.setenv(VARIABLE, WRONG_TOKEN)
        refused = ArchiveProgram(setup, own, tmp_path).failure("check")
        assert "The catalog of the iceberg tables cannot be used: UnauthorizedError" in refused
        assert WRONG_TOKEN not in refused
        monkeypatch.setenv(VARIABLE, TOKEN)
        assert ArchiveProgram(setup, own, tmp_path).answer("check") == "ok: 1 topics\n"
