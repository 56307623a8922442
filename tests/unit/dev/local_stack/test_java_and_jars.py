"""A Java that suits is taken, others are passed over saying why; jars are those of the locks, whole or not at all."""

from __future__ import annotations

import ssl
import subprocess
import threading
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java import ivy, jars, runtime
from dev.local_stack.java.jars import Jar, JarSet
from dev.local_stack.java.trust_store import PASSWORD, write_trust_store
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.tools import jar_locks

if TYPE_CHECKING:
    from collections.abc import Iterator
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
CONTENT = {"some.group:some:1.0": b"a jar", "other.group:native:2.0:linux-x86_64": b"another jar"}
PATHS = {
    "/some/group/some/1.0/some-1.0.jar": b"a jar",
    "/other/group/native/2.0/native-2.0-linux-x86_64.jar": b"another jar",
}


class Repository:
    """A Maven repository of a few files, which counts the jars that are asked of it."""

    def __init__(self) -> None:
        self.files = dict(PATHS)
        self.asked: list[str] = []
        repository = self

        class Handler(BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                content = repository.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()

            def do_GET(self) -> None:
                if self.path.endswith(".jar"):
                    repository.asked.append(self.path)
                self.do_HEAD()
                self.wfile.write(repository.files.get(self.path, b""))

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def settings(self) -> str:
        """An ivysettings.xml that names it."""
        root = f'root="http://127.0.0.1:{self.server.server_port}/"'
        return ivy.SETTINGS.replace('m2compatible="true"', f'm2compatible="true" {root}')


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Repository]:
    """It has the jars of JARS' lock file, and everything is installed into a folder of the test's."""
    monkeypatch.setenv("CDC_PROJECT", str(tmp_path))
    monkeypatch.setattr(jars, "LOCKS", tmp_path)
    locked = [Jar(name, sha256(content).hexdigest(), len(content)) for name, content in CONTENT.items()]
    JARS.lock_file.write_text(jar_locks.lock(JARS, locked))
    made = Repository()
    settings = tmp_path / "ivysettings.xml"
    settings.write_text(made.settings())
    monkeypatch.setenv("CDC_IVY_SETTINGS", str(settings))
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_jars_are_brought_once_and_again_when_they_change(repository: Repository) -> None:
    for one in (JARS, JARS, JarSet(JARS.name, JARS.coordinates, ("other.group:other",))):
        folder = jars.install(one, lambda _: None)
        assert {file.name: file.read_bytes() for file in folder.glob("*.jar")} == {
            "some-1.0.jar": b"a jar",
            "native-2.0-linux-x86_64.jar": b"another jar",
        }
    assert sorted(repository.asked) == sorted([*PATHS, *PATHS])


def test_a_jar_with_another_hash_is_an_error_that_names_it(repository: Repository) -> None:
    [path, other] = PATHS
    repository.files[path] = b"a bad jar"
    with pytest.raises(CdcError) as caught:
        jars.install(JARS, lambda _: None)
    assert caught.value.code is Code.STACK_MISSING
    for named in (
        "some.group:some:1.0",
        str(JARS.lock_file),
        sha256(b"a bad jar").hexdigest(),
        sha256(b"a jar").hexdigest(),
    ):
        assert named in caught.value.problem
    assert not JARS.folder.exists()
    repository.files = dict(PATHS)  # what was right is kept
    jars.install(JARS, lambda _: None)
    assert repository.asked.count(path) == 2
    assert repository.asked.count(other) == 1
    assert JARS.is_complete()


def test_a_file_that_an_earlier_try_left_is_checked(repository: Repository) -> None:
    partial = JARS.folder.with_name(f"{JARS.name}.partial")
    partial.mkdir(parents=True)
    (partial / "some-1.0.jar").write_bytes(b"half a j")
    (partial / "native-2.0-linux-x86_64.jar").write_bytes(b"another jar")
    assert (jars.install(JARS, lambda _: None) / "some-1.0.jar").read_bytes() == b"a jar"
    assert len(repository.asked) == 1


def test_what_is_nowhere_is_an_error_that_names_it(repository: Repository) -> None:
    del repository.files[next(iter(PATHS))]
    with pytest.raises(CdcError) as caught:
        jars.install(JARS, lambda _: None)
    assert "some.group#some;1.0" in caught.value.problem
    assert "not found" in caught.value.problem
    assert not JARS.is_complete()


@pytest.mark.parametrize("one", jar_locks.SETS, ids=lambda one: one.name)
def test_each_set_has_a_lock_of_its_own_coordinates(one: JarSet) -> None:
    text = one.lock_file.read_text()
    locked = one.jars()
    assert text == jar_locks.lock(one, locked)
    assert set(one.coordinates) <= {jar.coordinate for jar in locked}
    assert len({jar.file_name for jar in locked}) == len(locked)
    assert all(len(jar.sha256) == 64 and jar.size > 0 for jar in locked)


def test_every_lock_file_belongs_to_a_set() -> None:
    assert sorted(path.stem for path in jars.LOCKS.iterdir()) == sorted(one.name for one in jar_locks.SETS)


def test_ivy_is_asked_for_a_sets_coordinates() -> None:
    description = ivy.resolution_xml(JARS.coordinates, ("other.group:other",))
    assert '<dependency org="some.group" name="some" rev="1.0"' in description
    assert '<exclude org="other.group" module="other"/>' in description


def test_settings_are_spelled_as_the_version_wants_them() -> None:
    assert VERSIONS["4.0"].spell("commitlog_segment_mib", 4) == ("commitlog_segment_size_in_mb", 4)
    assert VERSIONS["5.0"].spell("commitlog_segment_mib", 4) == ("commitlog_segment_size", "4MiB")
