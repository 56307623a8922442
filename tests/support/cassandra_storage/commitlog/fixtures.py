"""The vectors' segments as files, for a program that takes files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from click.testing import CliRunner, Result

from cassandra_storage.commands.commitlog.cli import group
from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata, TableMetadata
from cassandra_storage.formats.types.marshal import NativeType
from tests.support.vectors.load import FOLDER, VERSIONS, Vectors, load


class CdcRaw(NamedTuple):
    """The cdc_raw that a real node left, and what is known of it. The folder is read only: copy what you change."""

    folder: Path
    vectors: Vectors


@pytest.fixture(scope="session", params=VERSIONS)
def cdc_raw(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> CdcRaw:
    """A cdc_raw folder with the recorded segments of each version."""
    folder = tmp_path_factory.mktemp("cdc_raw")
    for path in (FOLDER / request.param).iterdir():
        if path.name.endswith(".log.gz"):
            (folder / path.name.removesuffix(".gz")).write_bytes(gzip.decompress(path.read_bytes()))
        elif path.name.endswith("_cdc.idx"):
            (folder / path.name).write_bytes(path.read_bytes())
    return CdcRaw(folder, load(request.param))


def commitlog(*arguments: object, status: int = 0) -> Result:
    """Calls cassandra-commitlog in this process."""
    result = CliRunner().invoke(group, [str(argument) for argument in arguments])
    assert result.exit_code == status, result.output
    return result


def json_lines(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture(scope="session")
def plain_table() -> TableMetadata:
    """ks.plain (id int PRIMARY KEY, v text)."""
    key = ColumnMetadata("id", NativeType("int"), ColumnKind.PARTITION_KEY, 0)
    value = ColumnMetadata("v", NativeType("text"), ColumnKind.REGULAR)
    return TableMetadata("ks", "plain", UUID(int=7), (key,), regular_columns=(value,))
