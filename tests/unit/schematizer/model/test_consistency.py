"""The check that judges a database after kill -9 finds what it should find."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text

from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.model.database import opened
from schematizer.registration.mirror import Mirror
from schematizer.registration.register import Description
from schematizer.service import Catalogue
from tests.support.schematizer.consistency import problems

if TYPE_CHECKING:
    from pathlib import Path

RECORD = {"type": "record", "name": "users", "fields": [{"name": "id", "type": "int"}]}


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("", ""),
        ("DELETE FROM elements", "lacks elements"),
        ("DELETE FROM topic_schemas", "in no topic"),
        ("DELETE FROM versions WHERE subject = 'cdc.shop.users-value'", "not registered"),
        ("DELETE FROM versions WHERE subject = 'plain' AND version = 1", "versions"),
        ("DELETE FROM changes", "no change says"),
        ("INSERT INTO schemas (digest, text) VALUES ('x', '\"int\"')", "has no version"),
        ("UPDATE decisions SET schema_id = 2", "a decision for"),
        (("INSERT INTO topics (name, source_id, kind, status, pii, created_at, last_used_at) "
         "VALUES ('t', 1, 'other', 'read-write', '', 0, 0)"), "has no schema"),
    ],
)  # fmt: skip
def test_what_is_half_there_is_found(tmp_path: Path, damage: str, expected: str) -> None:
    with opened(f"sqlite:///{tmp_path / 'registry.db'}") as database:
        Catalogue(database, Rules()).registering.register(Description("cdc.shop", "avro", json.dumps(RECORD)), by="x")
        store = Store(database, Mirror())
        store.register("plain", '{"type": "fixed", "name": "A", "size": 1}')
        store.set_level("plain", store.level("", or_global=True).NONE)
        store.register("plain", '"string"')
        if damage:
            database.write(lambda connection: connection.execute(text(damage)))
        found = database.read(problems)
    assert (found == []) == (expected == "")
    assert any(expected in problem for problem in found) or not expected
