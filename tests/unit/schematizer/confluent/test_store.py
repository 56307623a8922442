"""For any schemas in any order, registration is idempotent, and ids are unique and never change."""

from __future__ import annotations

import json
import stat
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cdc_common.errors.codes import CdcError, Code
from schematizer.avro_schemas.compatibility import Level
from schematizer.avro_schemas.parsing import InvalidSchemaError, parse
from schematizer.confluent.errors import RegistryError
from schematizer.confluent.store import Store
from schematizer.model.database import Database
from schematizer.model.registry_tables import GLOBAL
from schematizer.registration.mirror import Mirror
from tests.support.schematizer.avro_strategies import maybe_schemas

if TYPE_CHECKING:
    from pathlib import Path


def is_schema(text: str) -> bool:
    try:
        parse(text)
    except InvalidSchemaError:
        return False
    return True


texts = maybe_schemas.map(json.dumps).filter(is_schema)
subjects = st.sampled_from(("a", "b"))


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(st.lists(st.tuples(subjects, texts), max_size=8))
def test_registration_is_idempotent_and_ids_are_unique(registrations: list[tuple[str, str]]) -> None:
    with TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{folder}/registry.db")
        store = Store(database, Mirror())
        store.set_level(GLOBAL, Level.NONE)
        first = [store.register(subject, text) for subject, text in registrations]
        assert [store.register(subject, text) for subject, text in registrations] == first
        assert [store.lookup(registered.subject, registered.text, deleted=False) for registered in first] == first
        by_id = {
            registered.schema_id: parse(text).canonical
            for registered, (_, text) in zip(first, registrations, strict=True)
        }
        assert len(by_id) == len(set(by_id.values()))
        assert {schema_id: store.schema(schema_id)[0] for schema_id in by_id} == by_id
        database.close()


class Ids(RuleBasedStateMachine):
    """Registering, deleting and opening again in any order never gives an id another meaning."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.url = f"sqlite:///{self.folder.name}/registry.db"
        self.database = Database(self.url)
        self.store = Store(self.database, Mirror())
        self.store.set_level(GLOBAL, Level.NONE)
        self.ids: dict[int, str] = {}

    @rule(subject=subjects, size=st.integers(1, 4))
    def register(self, subject: str, size: int) -> None:
        found = self.store.register(subject, json.dumps({"type": "fixed", "name": "F", "size": size}))
        assert self.ids.setdefault(found.schema_id, found.text) == found.text
        assert list(self.ids.values()).count(found.text) == 1

    @rule(subject=subjects, permanent=st.booleans())
    def delete_subject(self, subject: str, *, permanent: bool) -> None:
        try:
            self.store.delete_subject(subject, permanent=permanent)
        except RegistryError as refusal:
            assert 40401 <= refusal.error_code <= 40405  # noqa: PT017 - refused or not, both are right

    @rule(subject=subjects, permanent=st.booleans(), version=st.integers(1, 3))
    def delete_version(self, subject: str, version: int, *, permanent: bool) -> None:
        try:
            self.store.delete_version(subject, str(version), permanent=permanent)
        except RegistryError as refusal:
            assert 40401 <= refusal.error_code <= 40407  # noqa: PT017 - the same

    @rule()
    def open_again(self) -> None:
        self.database.close()
        self.database = Database(self.url)
        self.store = Store(self.database, Mirror())

    @invariant()
    def each_id_means_what_it_meant(self) -> None:
        for schema_id, text in getattr(self, "ids", {}).items():
            assert self.store.schema(schema_id)[0] == text

    def teardown(self) -> None:
        if hasattr(self, "database"):
            self.database.close()
            self.folder.cleanup()


TestIds = Ids.TestCase
TestIds.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)


def test_the_file_is_for_its_user_only(tmp_path: Path) -> None:
    Database(f"sqlite:///{tmp_path}/new/registry.db").close()
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "new" / "registry.db").stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("sqlite://", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("sqlite:////dev/null/registry.db", "cannot be used"),
        ("nothing://host/db", "not a usable SQLAlchemy URL"),
        ("no url", "not a usable SQLAlchemy URL"),
        ("postgresql+asyncpg://user:geheim@host/db", "***"),
    ],
)
def test_a_database_that_cannot_be_used(url: str, problem: str) -> None:
    with pytest.raises(CdcError) as caught:
        Database(url)
    assert caught.value.code is Code.REGISTRY_DATABASE
    assert problem in caught.value.problem
    assert "geheim" not in str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "registry.db").write_text("no database at all" * 1000)
    with pytest.raises(CdcError, match="not a database"):
        Database(f"sqlite:///{tmp_path}/registry.db")


def test_a_record_in_many_fields_is_no_bomb(tmp_path: Path) -> None:
    """2,000 fields of one record with 2,000 fields are 4,000,000 fields in a text of 100 kB, each a row."""
    inner = {"type": "record", "name": "B", "fields": [{"name": f"b{n}", "type": "int"} for n in range(2000)]}
    fields = [{"name": "x", "type": inner}, *({"name": f"a{n}", "type": "B"} for n in range(2000))]
    database = Database(f"sqlite:///{tmp_path}/registry.db")
    store = Store(database, Mirror())
    with pytest.raises(InvalidSchemaError, match="more than 20,000 fields"):
        store.register("cdc.shop.orders-value", json.dumps({"type": "record", "name": "R", "fields": fields}))
    assert store.counts() == (0, 0, 0)
    assert store.register("cdc.shop.orders-value", json.dumps(inner)).schema_id == 1
    database.close()
