"""An encrypted commit log leaves the node only with the keystore and the setting that allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cassandra_storage.formats.commitlog.sections import Codecs, EncryptionParameters
from cdc_common.errors.codes import CdcError, Code
from publisher.log.cdc_raw import open_codecs
from publisher.settings import PublisherSettings
from tests.support.cassandra_storage.files.coded import FORMS
from tests.support.cassandra_storage.segment_builder import NAME

KEYSTORE = Path(__file__).resolve().parents[3] / "support" / "cassandra_storage" / "files" / "keys.jceks"
ENCRYPTED, COMPRESSED = FORMS[-1], FORMS[0]
ENCRYPTION = EncryptionParameters("AES/CBC/PKCS5Padding", "one", bytes(16))


def codecs_of(folder: Path, **values: Any) -> Codecs:  # noqa: ANN401  any setting
    return open_codecs(PublisherSettings(**values), folder)


def test_a_plain_log_needs_nothing(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(COMPRESSED.segment([[b"an entry of a log"]]))
    (tmp_path / NAME.replace("123", "124")).touch()  # only just made
    assert callable(codecs_of(tmp_path).decompressor("LZ4Compressor"))


@pytest.mark.parametrize(
    "given",
    [{}, {"keystore": KEYSTORE, "keystore_password": "secret1"}, {"allow_plaintext_downstream": True}],
    ids=["nothing", "no consent", "no key"],
)
def test_key_and_consent_are_needed(tmp_path: Path, given: dict[str, Any]) -> None:
    (tmp_path / NAME).write_bytes(ENCRYPTED.segment([]))
    with pytest.raises(CdcError, match=NAME) as caught:
        codecs_of(tmp_path, **given)
    assert caught.value.code is Code.LOG_ENCRYPTED


def test_a_keystore_alone_is_no_consent(tmp_path: Path) -> None:
    """The log may turn out encrypted later."""
    with pytest.raises(CdcError) as caught:
        codecs_of(tmp_path, keystore=KEYSTORE, keystore_password="secret1")
    assert caught.value.code is Code.LOG_ENCRYPTED


def test_the_keystore_is_read(tmp_path: Path) -> None:
    given = {"keystore": KEYSTORE, "allow_plaintext_downstream": True}
    codecs = codecs_of(tmp_path, keystore_password="secret1", **given)
    assert callable(codecs.decryptor(ENCRYPTION._replace(key_alias="One")))
    for wrong in ({"keystore_password": "secret2"}, {"keystore_password": "secret1", "key_password": "secret2"}):
        with pytest.raises(CdcError, match="password") as caught:
            codecs_of(tmp_path, **given, **wrong)
        assert caught.value.code is Code.KEYSTORE
        assert "secret2" not in str(caught.value)
    with pytest.raises(CdcError, match="No such file"):
        codecs_of(tmp_path, **given | {"keystore": tmp_path / "none"})
