"""A node's yaml for each form of commit log, and the keystore of an encrypted one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cassandra_storage.files.keystore import KeystoreError, read_keys
from dev.local_stack.java.runtime import find_java
from dev.local_stack.servers.cassandra import CassandraCluster
from dev.local_stack.servers.cassandra_options import CassandraOptions
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.local_stack.servers.encryption import KEY_ALIAS, KEY_BITS, PASSWORD, make_keystore

if TYPE_CHECKING:
    from pathlib import Path


def yaml(folder: Path, version: str, options: CassandraOptions) -> dict[str, object]:
    return CassandraCluster(version, options=options, folder=folder).nodes[0].yaml()


def test_compression_and_storage_compatibility(tmp_path: Path) -> None:
    for version in VERSIONS.values():
        plain = yaml(tmp_path, version.line, CassandraOptions())
        assert "commitlog_compression" not in plain
        assert plain.get("storage_compatibility_mode") == ("NONE" if version.line == "5.0-NONE" else None)
        for name in version.compressors:
            compressed = yaml(tmp_path, version.line, CassandraOptions(commitlog_compression=name))
            assert compressed["commitlog_compression"] == [{"class_name": f"{name}Compressor"}]
    assert "Zstd" not in VERSIONS["3.11"].compressors


@pytest.mark.servers
def test_a_keystore_holds_one_key(tmp_path: Path) -> None:
    keystore = make_keystore(tmp_path / "keystore.jceks", find_java(17))
    keys = read_keys(keystore, PASSWORD)
    assert {alias: len(key) * 8 for alias, key in keys.items()} == {KEY_ALIAS: KEY_BITS}
    with pytest.raises(KeystoreError):
        read_keys(keystore, "another")
    options = yaml(tmp_path, "5.0", CassandraOptions(keystore=keystore))["transparent_data_encryption_options"]
    assert isinstance(options, dict)
    assert options["enabled"] is True
    assert str(keystore) in str(options)
