"""Requests to a registry: what is tried again, what is not, and what an error says."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from cdc_common.clients.registry import transport
from cdc_common.clients.registry.connection import registry_tls
from cdc_common.clients.registry.errors import IncompatibleSchemaError, RegistryRequestError
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.transport import Transport
from cdc_common.errors.codes import Code
from cdc_common.settings import RegistrySettings

if TYPE_CHECKING:
    from collections.abc import Iterator


class Scripted(BaseHTTPRequestHandler):
    """Answers what `answers` has, the last one again and again, and notes the requests."""

    answers: ClassVar[list[tuple[int, str]]] = []
    paths: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.paths.append(self.path)
        status, text = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(transport, "_FIRST_WAIT", 0.001)
    Scripted.paths.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Scripted)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def ask(url: str, *answers: tuple[int, str], **more: Any) -> bytes:  # noqa: ANN401 - the transport's settings
    Scripted.answers[:] = answers
    opened = Transport(url, **more)
    try:
        return opened.ask("GET", ("a b", "c"), query={"x": 1, "y": None})
    finally:
        opened.close()


def refused(url: str, *answers: tuple[int, str]) -> RegistryRequestError:
    with pytest.raises(RegistryRequestError) as raised:
        ask(url, *answers)
    assert url in raised.value.problem
    assert "GET /a%20b/c" in raised.value.problem
    return raised.value


def test_a_failure_that_may_pass_is_tried_three_times(url: str) -> None:
    assert ask(url, (503, ""), (429, "{}"), (200, "yes")) == b"yes"
    assert Scripted.paths == ["/a%20b/c?x=1"] * 3
    error = refused(url, (503, ""))
    assert len(Scripted.paths) == 6
    assert (error.code, error.status, error.is_retried) == (Code.REGISTRY_UNREACHABLE, 503, True)


@pytest.mark.parametrize("status", [400, 401, 404, 409, 422, 501])
def test_a_refusal_is_not_tried_again(url: str, status: int) -> None:
    error = refused(url, (status, '{"error": "word", "message": "It is so.", "fix": "Do this."}'))
    assert len(Scripted.paths) == 1
    assert (error.code, error.status, error.word) == (Code.REGISTRY_REFUSED, status, "word")
    assert "It is so" in error.problem
    assert error.fix == "Do this." or status == 401
    assert not error.lacks_request


def test_a_path_of_the_root_stays_before_the_request(url: str) -> None:
    ask(f"{url}/registry/", (200, ""))
    assert Scripted.paths == ["/registry/a%20b/c?x=1"]


def test_the_words_of_confluents_api_are_read_as_well(url: str) -> None:
    error = refused(url, (404, '{"error_code": 40403, "message": "Schema not found"}'))
    assert (error.word, error.is_not_found, error.lacks_request) == ("40403", False, False)
    assert "Schema not found" in error.problem
    for status, code in ((409, 409), (422, 409)):
        incompatible = refused(url, (status, f'{{"error_code": {code}, "message": "no"}}'))
        assert isinstance(incompatible, IncompatibleSchemaError)
    of_the_catalogue = refused(url, (409, '{"error": "conflict", "message": "It is read-only.", "fix": "Wait."}'))
    assert not isinstance(of_the_catalogue, IncompatibleSchemaError)


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (404, ""),
        (404, '{"error_code": 404, "message": "HTTP 404 Not Found"}'),
        (404, '{"error": "http", "message": "Not Found", "fix": ""}'),
        (405, "<html>"),
        (200, "<html>"),
        (200, '{"not": "a list"}'),
    ],
)
def test_another_program_lacks_the_request(url: str, status: int, text: str) -> None:
    Scripted.answers[:] = [(status, text)]
    with SchematizerClient(url) as client, pytest.raises(RegistryRequestError) as raised:
        client.namespaces()
    assert raised.value.lacks_request
    assert raised.value.code is Code.REGISTRY_REFUSED


def test_a_thing_that_does_not_exist_is_no_lack_of_the_request(url: str) -> None:
    error = refused(url, (404, '{"error": "not-found", "message": "No such topic.", "fix": "List them."}'))
    assert error.is_not_found
    assert not error.lacks_request


def test_a_system_without_authorities_trusts_those_of_certifi(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/at-all.pem")
    monkeypatch.setenv("SSL_CERT_DIR", "/nowhere")
    context = registry_tls(RegistrySettings(url="https://registry"))
    assert context.cert_store_stats()["x509_ca"] > 50
