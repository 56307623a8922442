"""Names of SSTables' files, their versions and ids."""

from __future__ import annotations

from uuid import UUID

import pytest

from cassandra_storage.formats.errors import FormatError, UnsupportedError
from cassandra_storage.formats.sstable.file_name import id_uuid, parse_name, parse_table_folder
from cassandra_storage.formats.sstable.versions import known_formats

UUID_ID = "3h6p_0o3r_0aom92rcrdqeh1yyfw"


@pytest.mark.parametrize("form", known_formats(), ids=lambda form: form.version)
def test_known_versions(form: object) -> None:
    assert form in known_formats()
    version = next(known_format for known_format in known_formats() if known_format is form)
    for name_id in ("1", "2147483647", UUID_ID):
        descriptor, component = parse_name(f"{version.version}-{name_id}-{version.format}-Statistics.db")
        assert (descriptor.format, descriptor.id, component) == (version, name_id, "Statistics.db")
        assert descriptor.file_name("Data.db") == f"{version.version}-{name_id}-{version.format}-Data.db"


def test_uuid_ids() -> None:
    """TimeUUID of the JVM that wrote this id: its time is 2022-01-28."""
    uuid = id_uuid("3gci_0n5b_1ocsg2iqqh6m5ujfq8")
    assert uuid.version == 1
    older, newer = (
        parse_name(f"nb-{sstable_id}-big-Data.db")[0] for sstable_id in ("3gci_0n5b_1ocsg2iqqh6m5ujfq8", UUID_ID)
    )
    numbered = parse_name("nb-7-big-Data.db")[0]
    assert sorted([newer, numbered, older], key=lambda name: name.order) == [numbered, older, newer]


@pytest.mark.parametrize("name", ["la-1-big-Data.db", "ka-1-big-Data.db", "lb-3-big-Data.db"])
def test_older_versions_are_refused_with_advice(name: str) -> None:
    with pytest.raises(UnsupportedError, match="nodetool upgradesstables") as caught:
        parse_name(name)
    assert caught.value.segment == name


@pytest.mark.parametrize("name", ["ks-table-ka-12-Data.db", "ks-table-tmp-jb-1-Data.db"])
def test_names_before_2_2_are_refused_with_advice(name: str) -> None:
    with pytest.raises(UnsupportedError, match=r"version (ka|jb) .*nodetool upgradesstables"):
        parse_name(name)


@pytest.mark.parametrize("name", ["nc-1-big-Data.db", "zz-1-big-Data.db", "da-1-big-Data.db", "nb-1-bti-Data.db"])
def test_unknown_versions_are_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedError, match=f"version {name[:2]} of the format"):
        parse_name(name)


def test_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match="format 'trie'"):
        parse_name("nb-1-trie-Data.db")


@pytest.mark.parametrize(
    "name", ["Data.db", "nb-1-Data.db", "nb-x-big-Data.db", "nb-zzzz_zzzz_zzzzzzzzzzzzzzzzzz-big-Data.db"]
)
def test_other_names(name: str) -> None:
    with pytest.raises(FormatError):
        parse_name(name)


def test_table_folders() -> None:
    found = parse_table_folder("orders-3f1c1e60c07511ee9c5e0b2b6d3f7c1a")
    assert found == ("orders", UUID("3f1c1e60-c075-11ee-9c5e-0b2b6d3f7c1a"))
    assert parse_table_folder("snapshots") is None
