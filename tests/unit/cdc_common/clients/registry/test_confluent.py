"""The programs' registry client against our registry, a server that is none, and nothing at all."""

from __future__ import annotations

import json
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import RegistrySettings
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator

ROW = {"type": "record", "name": "Row", "fields": [{"name": "a", "type": "int", "doc": "ü"}]}
OTHER = {"type": "record", "name": "Row", "fields": [{"name": "b", "type": "int"}]}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    running = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield running
    running.stop()


class Answering(BaseHTTPRequestHandler):
    """Answers every request with one status and body, and keeps the last request's authorization."""

    status = 404
    body = b"<html>not found</html>"
    authorization: str | None = None

    def do_POST(self) -> None:
        type(self).authorization = self.headers["Authorization"]
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def stranger() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def refused(settings: RegistrySettings, code: Code, timeout: float = 5.0) -> CdcError:
    with RegistryClient(settings, timeout) as client, pytest.raises(CdcError) as caught:
        client.register("s", ROW)
    assert caught.value.code is code
    return caught.value


def test_register_lookup_and_get(registry: Registry) -> None:
    with RegistryClient(RegistrySettings(url=registry.url)) as client:
        assert client.lookup("rows", ROW) is None
        schema_id = client.register("rows", ROW)
        assert client.lookup("rows", ROW) == schema_id
        assert client.lookup("rows", OTHER) is None
        assert client.get(schema_id) == ROW
        assert client.register("rows", ROW) == schema_id
        client.register("other", ROW)
        assert client.list_subjects("ro") == {"rows"}
    with RegistryClient(RegistrySettings(url=f"{registry.url}/")) as another:
        assert another.get(schema_id) == ROW


def test_an_incompatible_schema_is_refused_in_the_registrys_words(registry: Registry) -> None:
    with RegistryClient(RegistrySettings(url=registry.url)) as client:
        client.register("strict", ROW)
        with pytest.raises(CdcError) as caught:
            client.register("strict", OTHER)
    assert caught.value.code is Code.REGISTRY_REFUSED
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in caught.value.problem
    assert "strict" in caught.value.problem
    assert "compatibility" in caught.value.fix


def test_an_unknown_id_is_refused(registry: Registry) -> None:
    with RegistryClient(RegistrySettings(url=registry.url)) as client, pytest.raises(CdcError, match="40403"):
        client.get(99_999)


def test_the_versions_of_a_schema(registry: Registry) -> None:
    with RegistryClient(RegistrySettings(url=registry.url)) as client:
        client.register("two", {**ROW, "doc": "first"})
        schema_id = client.register("one", ROW)
        assert client.register("two", ROW) == schema_id
        found = client.versions(schema_id)
        assert (found["one"], found["two"]) == (1, 2)
        registry.call("DELETE", "/subjects/two")
        client.register("three", ROW)
        assert client.versions(schema_id)["two"] == 2
        assert client.versions(99_999) == {}


def test_a_schema_that_is_not_avro(stranger: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"schema": 'syntax = "proto3";', "schemaType": "PROTOBUF"}
    monkeypatch.setattr(Answering, "status", 200)
    monkeypatch.setattr(Answering, "body", json.dumps(answer).encode())
    with RegistryClient(RegistrySettings(url=stranger)) as client, pytest.raises(CdcError) as caught:
        client.get(7)
    assert caught.value.code is Code.REGISTRY_REFUSED
    assert "The schema of the id 7 is PROTOBUF, not Avro" in caught.value.problem


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = refused(RegistrySettings(url=f"http://127.0.0.1:{port}"), Code.REGISTRY_UNREACHABLE)
    assert str(port) in error.problem
    assert "registry.url" in error.fix


def test_somebody_who_never_answers() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        settings = RegistrySettings(url=f"http://127.0.0.1:{server.getsockname()[1]}")
        before = time.monotonic()
        refused(settings, Code.REGISTRY_UNREACHABLE, timeout=0.2)
        assert time.monotonic() - before < 20


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (404, b"<html>", Code.REGISTRY_REFUSED),
        (401, b'{"error_code": 401, "message": "who are you?"}', Code.REGISTRY_REFUSED),
        (422, b'{"error_code": 42201, "message": "bad"}', Code.REGISTRY_REFUSED),
        (500, b'{"error_code": 50001, "message": "store down"}', Code.REGISTRY_UNREACHABLE),
        (503, b"", Code.REGISTRY_UNREACHABLE),
        (200, b"<html>welcome</html>", Code.REGISTRY_REFUSED),
        (200, b"[]", Code.REGISTRY_REFUSED),
        (200, b"{}", Code.REGISTRY_REFUSED),
    ],
)
def test_other_answers(stranger: str, monkeypatch: pytest.MonkeyPatch, status: int, body: bytes, code: Code) -> None:
    monkeypatch.setattr(Answering, "status", status)
    monkeypatch.setattr(Answering, "body", body)
    assert stranger in refused(RegistrySettings(url=stranger), code).problem


def test_credentials_are_sent_and_not_told(stranger: str) -> None:
    settings = RegistrySettings(url=stranger, username="user", password=SecretStr("geheim"))
    assert "geheim" not in str(refused(settings, Code.REGISTRY_REFUSED))
    assert Answering.authorization == "Basic dXNlcjpnZWhlaW0="


@pytest.mark.parametrize("name", ["ssl_ca_file", "ssl_identity_file"])
@pytest.mark.parametrize("file", ["/none.pem", __file__])
def test_a_file_that_holds_no_certificate_is_a_wrong_setting(name: str, file: str) -> None:
    settings = RegistrySettings.model_validate({"url": "https://registry", name: file})
    for connect in (RegistryClient, SchematizerClient.of_settings):
        with pytest.raises(CdcError, match=file) as caught:
            connect(settings)
        assert caught.value.code is Code.CONFIG_INVALID
        assert name in caught.value.fix
