"""A publisher that knows all its ids asks the registry at its start, and not when a table is created."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, cast

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.raw import RAW_SCHEMA
from publisher import state_files
from publisher.settings import Settings
from publisher.topics.open_topics import make_raw_topics
from tests.support.e2e.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://registry"
KNOWN = {"schema": RAW_SCHEMA, "registry": sha256(URL.encode()).hexdigest(), "ids": {"cdc.raw.a.b-value": 1}}


def test_the_certificates_for_the_registry_are_read_at_the_start(tmp_path: Path) -> None:
    state_files.write(tmp_path / "registry.json", KNOWN)
    table: dict[str, Any] = {"url": URL}

    def make() -> None:
        settings = Settings.model_validate({"registry": table, "publisher": {"state_directory": tmp_path}})
        make_raw_topics(settings, "a", cast("Any", None))

    make()
    table["ssl_ca_file"] = tmp_path / "none.pem"
    with pytest.raises(CdcError, match=r"none\.pem") as caught:
        make()
    assert caught.value.code is Code.CONFIG_INVALID


def test_certificates_that_are_just_being_replaced_are_waited_for(tmp_path: Path) -> None:
    """A publisher that ended with a configuration error would not be started again, and cdc_raw would fill."""
    state_files.write(tmp_path / "registry.json", KNOWN)
    file = Authority(tmp_path).file
    table = {"url": URL, "ssl_ca_file": file}
    settings = Settings.model_validate({"registry": table, "publisher": {"state_directory": tmp_path}})
    topics = make_raw_topics(settings, "a", cast("Any", None))
    file.unlink()
    with pytest.raises(CdcError, match=r"authority\.pem") as caught:
        topics._ids.schema_id("cdc.raw.a.new-value")
    assert caught.value.code is Code.REGISTRY_UNREACHABLE
