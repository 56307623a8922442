"""Compressed and encrypted segments say what plain ones do; keys come from Cassandra's keystore."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from cassandra_storage.files.keystore import read_keys
from tests.support.cassandra_storage.commitlog.fixtures import CdcRaw, commitlog, json_lines
from tests.support.cassandra_storage.files.coded import ENCRYPTION, FORMS, Form, encrypt, lz4
from tests.support.cassandra_storage.files.keystore import KEYSTORE, PASSWORD
from tests.support.cassandra_storage.segment_builder import NAME, coded_segment, encrypted_blocks

if TYPE_CHECKING:
    from pathlib import Path

COMPRESSED = [form for form in FORMS if form.name != "encrypted"]
SECTION = 50  # mutations


def sections(cdc_raw: CdcRaw) -> list[list[bytes]]:
    """The mutations of a real segment with the CREATEs, in sections."""
    entries = [entry.mutation for entry in cdc_raw.vectors.segments[0].entries()]
    return [entries[start : start + SECTION] for start in range(0, len(entries), SECTION)]


def without_place(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in line.items() if name not in {"segment", "position"}} for line in lines]


@pytest.mark.parametrize("form", COMPRESSED, ids=lambda form: form.name)
def test_a_compressed_segment_says_what_the_plain_one_does(cdc_raw: CdcRaw, tmp_path: Path, form: Form) -> None:
    (tmp_path / NAME).write_bytes(form.segment(sections(cdc_raw)))
    plain = json_lines(commitlog("dump", "--values", cdc_raw.folder / cdc_raw.vectors.segments[0].name))
    coded = json_lines(commitlog("dump", "--values", tmp_path))
    assert without_place(coded) == without_place(plain)
    [facts] = json_lines(commitlog("info", "--json", tmp_path))
    assert facts["compression"] == f"{form.name}Compressor"
    assert facts["sections"] == len(sections(cdc_raw))
    assert facts["ending"] == {"kind": "end of file", "position": facts["size"]}
    assert "0 problems" in commitlog("verify", tmp_path).stdout


@pytest.mark.parametrize("form", COMPRESSED, ids=lambda form: form.name)
def test_damage_in_a_compressed_segment_is_told(cdc_raw: CdcRaw, tmp_path: Path, form: Form) -> None:
    data = bytearray(form.segment(sections(cdc_raw)))
    data[len(data) // 2] ^= 0xFF
    (tmp_path / NAME).write_bytes(data)
    assert "of the file)" in commitlog("verify", tmp_path, status=1).stdout


def test_a_compressed_segment_may_end_torn(cdc_raw: CdcRaw, tmp_path: Path) -> None:
    data = COMPRESSED[0].segment(sections(cdc_raw))
    (tmp_path / NAME).write_bytes(data[:-10])
    assert "note: " in commitlog("verify", tmp_path).stdout
    (tmp_path / NAME.replace(".log", "_cdc.idx")).write_text("100\nCOMPLETED")
    assert "reaches past" in commitlog("verify", tmp_path, status=1).stdout
    # What a node writes of a segment that it has replayed: the length, torn tail included.
    (tmp_path / NAME.replace(".log", "_cdc.idx")).write_text(f"{len(data) - 10}\nCOMPLETED")
    assert "note: " in commitlog("verify", tmp_path).stdout


@pytest.fixture
def encrypted(cdc_raw: CdcRaw, tmp_path: Path) -> Path:
    """Encrypted by the key `two` of tests/support/cassandra_storage/files/keys.jceks."""
    key = read_keys(KEYSTORE, PASSWORD)["two"]
    encode = partial(encrypted_blocks, encrypt=partial(encrypt, key=key), compress=lz4, block_size=4096)
    parameters = {**ENCRYPTION, "encKeyAlias": "Two"}
    (tmp_path / NAME).write_bytes(coded_segment(sections(cdc_raw), parameters, encode))
    return tmp_path / NAME


def test_an_encrypted_segment(cdc_raw: CdcRaw, encrypted: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text(PASSWORD + "\n")
    key = ("--keystore", KEYSTORE, "--keystore-password-file", password)
    plain = json_lines(commitlog("dump", "--values", cdc_raw.folder / cdc_raw.vectors.segments[0].name))
    assert without_place(json_lines(commitlog("dump", "--values", *key, encrypted))) == without_place(plain)
    [facts] = json_lines(commitlog("info", "--json", *key, encrypted))
    assert (facts["encryption"], facts["key_alias"]) == ("AES/CBC/PKCS5Padding", "Two")


def test_the_password_from_the_environment(encrypted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "needs --keystore-password-file" in commitlog("verify", "--keystore", KEYSTORE, encrypted, status=2).stderr
    monkeypatch.setenv("CASSANDRA_COMMITLOG_KEYSTORE_PASSWORD", "another")
    assert "wrong password" in commitlog("verify", "--keystore", KEYSTORE, encrypted, status=2).stderr
    monkeypatch.setenv("CASSANDRA_COMMITLOG_KEYSTORE_PASSWORD", PASSWORD)
    assert "0 problems" in commitlog("verify", "--keystore", KEYSTORE, encrypted).stdout


def test_an_encrypted_segment_without_its_key(encrypted: Path) -> None:
    assert "no key with the alias Two" in commitlog("verify", encrypted, status=1).stdout
    text = commitlog("info", encrypted).stdout
    assert "encryption   AES/CBC/PKCS5Padding, key Two" in text
    assert "problem at 0: no key with the alias Two" in text
