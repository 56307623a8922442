"""A Java that suits is taken, others are passed over saying why; jars appear whole or not at all."""

from __future__ import annotations

import ssl
import subprocess
from typing import TYPE_CHECKING

import pytest

from cdc_program.errors import CdcError, Code
from local_stack.java import jars, runtime
from local_stack.java.jars import JarSet
from local_stack.java.trust_store import PASSWORD, write_trust_store
from local_stack.servers.cassandra_versions import VERSIONS

if TYPE_CHECKING:
    from pathlib import Path


def fake_java(home: Path, version: str, *, missing_module: str = "") -> None:
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = f'case "$*" in *{missing_module}*) echo "Module {missing_module} not found" >&2; exit 1;; esac\n'
    program.write_text(f"#!/bin/sh\n{refuse if missing_module else ''}echo 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)


@pytest.fixture
def java_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with Javas."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("CDC_JAVA", raising=False)
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.setattr(runtime, "SYSTEM_FOLDERS", (str(tmp_path / "javas"),))
    return tmp_path / "javas"


def test_other_versions_are_passed_over(java_folder: Path) -> None:
    fake_java(java_folder / "a-8", "1.8.0_292")
    fake_java(java_folder / "b-21", "21.0.1")
    fake_java(java_folder / "c-17", "17.0.9")
    found, passed_over = runtime.system_java(17)
    assert found is not None
    assert found.home == java_folder / "c-17"
    assert [one.reason for one in passed_over] == [
        "it is Java 1.8.0_292, wanted is Java 17",
        "it is Java 21.0.1, wanted is Java 17",
    ]


def test_a_java_that_lacks_modules_is_passed_over(java_folder: Path) -> None:
    fake_java(java_folder / "trimmed", "17.0.9", missing_module="jdk.incubator.vector")
    found, passed_over = runtime.system_java(17)
    assert found is None
    assert "it lacks modules" in passed_over[0].reason
    assert "jdk.incubator.vector" in passed_over[0].reason


def test_a_java_that_does_not_run_is_passed_over(java_folder: Path) -> None:
    program = java_folder / "broken" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("not a program")
    assert "it does not run" in runtime.system_java(17)[1][0].reason


def test_java_home_comes_first(java_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(java_folder / "a-17", "17.0.1")
    fake_java(tmp_path / "mine", "17.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "mine"))
    found, _ = runtime.system_java(17)
    assert found is not None
    assert found.version == "17.0.2"


def test_the_trust_store_is_read_by_java(tmp_path: Path) -> None:
    store = tmp_path / "trust.jks"
    found = runtime.find_java(17)
    assert write_trust_store(store)
    # keytool's class, as a runtime without the tool has it too
    command = [str(found.executable), "--add-exports=java.base/sun.security.tools.keytool=ALL-UNNAMED"]
    command += ["-m", "java.base/sun.security.tools.keytool.Main"]
    listed = subprocess.run(
        [*command, "-list", "-keystore", str(store), "-storepass", PASSWORD], capture_output=True, text=True, check=True
    )
    count = len(ssl.create_default_context().get_ca_certs(binary_form=True))
    assert f"{count} entries" in listed.stdout


JARS = JarSet("some-1.0", ("some.group:some:1.0",))


def test_jars_that_fail_half_way_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_PROJECT", str(tmp_path))

    def half(_jars: JarSet, _description: Path, _cache: Path, target: Path, _report: object) -> None:
        (target / "some-1.0.jar").write_text("")
        raise CdcError(Code.STACK_MISSING, "no network", "")

    monkeypatch.setattr(jars, "_run_ivy", half)
    with pytest.raises(CdcError):
        jars.install(JARS, lambda _: None)
    assert not JARS.is_complete()
    assert not JARS.folder.exists()


def test_jars_are_brought_once_and_again_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_PROJECT", str(tmp_path))
    brought: list[str] = []

    def whole(one: JarSet, description: Path, _cache: Path, target: Path, _report: object) -> None:
        brought.append(description.read_text())
        (target / f"{one.name}.jar").write_text("")

    monkeypatch.setattr(jars, "_run_ivy", whole)
    for one in (JARS, JARS, JarSet(JARS.name, JARS.coordinates, ("other.group:other",))):
        assert (jars.install(one, lambda _: None) / f"{JARS.name}.jar").exists()
    assert len(brought) == 2
    assert '<dependency org="some.group" name="some" rev="1.0"' in brought[0]
    assert '<exclude org="other.group" module="other"/>' in brought[1]


def test_settings_are_spelled_as_the_version_wants_them() -> None:
    assert VERSIONS["4.0"].spell("commitlog_segment_mib", 4) == ("commitlog_segment_size_in_mb", 4)
    assert VERSIONS["5.0"].spell("commitlog_segment_mib", 4) == ("commitlog_segment_size", "4MiB")
