"""Frozen vectors of the registry: its database at each revision of its migrations, as SQL, and a backup."""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from cdc_common.clients.registry.kinds import About
from schematizer.avro_schemas.compatibility import Level
from schematizer.catalogue.rules import Rules
from schematizer.confluent.store import Store
from schematizer.converters.converted import FieldDocumentation
from schematizer.model import migrating
from schematizer.model.backup import check_backup, write_backup
from schematizer.model.database import Database, opened
from schematizer.registration.mirror import Mirror
from schematizer.registration.register import Description
from schematizer.service import Catalogue
from tests.support.frozen.vectors import Format, Vector
from tests.support.schematizer.table_differences import table_differences

if TYPE_CHECKING:
    from collections.abc import Mapping

SCHEMAS = {
    "cdc.shop.orders-key": '{"fields":[{"name":"k","type":"int"}],"name":"Key","namespace":"shop","type":"record"}',
    "plain-value": '{"fields":[{"name":"a","type":"int"}],"name":"Plain","namespace":"shop","type":"record"}',
}
PERSONAL = '{"fields":[{"name":"email","type":"string"}],"name":"Customer","namespace":"shop","type":"record"}'
PLAIN = "plain-value"
SEARCH_INDEX = "search_index"
OF_VIRTUAL_TABLES = ("PRAGMA writable_schema", "INSERT INTO sqlite_master", f'INSERT INTO "{SEARCH_INDEX}')
MIGRATIONS = Path(migrating.__file__).with_name("migrations")


def make() -> list[Vector]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found = [_at_revision(folder, revision) for revision in _revisions()]
        with opened(f"sqlite:///{folder / 'full.db'}") as database:
            _fill(database)
            content = _content(database)
            rows = write_backup(database, folder / "backup")
            header = check_backup(folder / "backup")
        backup = Vector("backup", (folder / "backup").read_bytes(), {"header": header, "rows": rows})
        return [*found, Vector("catalogue", _dump(folder / "full.db"), content), backup]


def read(name: str, data: Mapping[str, bytes]) -> Any:  # noqa: ANN401 - JSON
    """A database as this program migrates it; a backup as this program checks it."""
    with tempfile.TemporaryDirectory() as folder:
        if name == "backup":
            file = Path(folder, "backup")
            file.write_bytes(data[name])
            return {"header": check_backup(file), "rows": len(gzip.decompress(data[name]).splitlines()) - 2}
        file = Path(folder, "registry.db")
        _load(file, data[name])
        with opened(f"sqlite:///{file}") as database:
            assert database.read(table_differences) == []
            return _content(database)


def _revisions() -> list[str]:
    """Oldest first."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    return [script.revision for script in ScriptDirectory.from_config(config).walk_revisions()][::-1]


def _at_revision(folder: Path, revision: str) -> Vector:
    """Return the contents that a registry of that revision has at least: schemas, versions, levels."""
    file = folder / f"{revision}.db"
    engine = create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(MIGRATIONS))
        command.upgrade(config, revision)
        for number, (subject, schema) in enumerate(SCHEMAS.items(), 1):
            values = {"id": number, "digest": sha256(schema.encode()).hexdigest(), "text": schema, "subject": subject}
            connection.execute(text("INSERT INTO schemas (id, digest, text) VALUES (:id, :digest, :text)"), values)
            insert = "INSERT INTO versions (subject, version, schema_id, deleted) VALUES (:subject, 1, :id, false)"
            connection.execute(text(insert), values)
        level = "INSERT INTO subject_settings (subject, compatibility) VALUES (:subject, 'FULL')"
        connection.execute(text(level), {"subject": PLAIN})
    engine.dispose()
    subjects = {subject: [[1, number, schema]] for number, (subject, schema) in enumerate(SCHEMAS.items(), 1)}
    return Vector(f"revision {revision}", _dump(file), {"subjects": subjects, "level": "FULL"})


def _fill(database: Database) -> None:
    catalogue, store = Catalogue(database, Rules()), Store(database, Mirror())
    for subject, schema in SCHEMAS.items():
        store.register(subject, schema)
    store.set_level(PLAIN, Level.FULL)
    personal = {"email": FieldDocumentation(is_pii=True)}
    catalogue.registering.register(Description("cdc.shop", "avro", PERSONAL, fields=personal), by="test")
    catalogue.notes.add(About.SOURCE, 1, "a *note*", by="test")
    catalogue.tags.put("important", About.SOURCE, 1, by="test")
    catalogue.data_targets.put("warehouse", "redshift", "cluster", None, None, by="test")


def _content(database: Database) -> Any:  # noqa: ANN401 - JSON
    store = Store(database, Mirror())
    subjects = {
        subject: [
            [found.version, found.schema_id, found.text]
            for number in store.versions(subject, deleted=False, only_deleted=False)
            for found in [store.version(subject, str(number), deleted=False)]
        ]
        for subject in store.subjects("", deleted=False, only_deleted=False)
    }
    counts = {table: _count(database, table) for table in ("elements", "notes", "tags", "data_targets")}
    found = len(Catalogue(database, Rules()).search.find("email"))
    return {"subjects": subjects, "level": store.level(PLAIN, or_global=False).name, "rows": counts, "found": found}


def _count(database: Database, table: str) -> int:
    query = text(f"SELECT count(*) FROM {table}")
    return int(database.read(lambda connection: connection.execute(query).scalar_one()))


def _dump(file: Path) -> bytes:
    """SQL that makes the database, compressed. The full-text index is made from its documents."""
    with closing(sqlite3.connect(file)) as connection:
        indexes = connection.execute(f"SELECT sql FROM sqlite_master WHERE name = '{SEARCH_INDEX}'").fetchall()
        first, *lines, last = [line for line in connection.iterdump() if not line.startswith(OF_VIRTUAL_TABLES)]
        kept = [line for line in lines if f"{SEARCH_INDEX}_" not in line]
        rebuilt = [f"INSERT INTO {SEARCH_INDEX} ({SEARCH_INDEX}) VALUES ('rebuild');" for _ in indexes]
        made = [f"{sql};" for (sql,) in indexes]
        return gzip.compress("\n".join([first, *made, *kept, *rebuilt, last]).encode(), mtime=0)


def _load(file: Path, dump: bytes) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.executescript(gzip.decompress(dump).decode())
        connection.commit()


FORMATS = (Format("registry", ("schematizer/model/backup.py",), make, read),)
