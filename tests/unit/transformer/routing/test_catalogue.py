"""Which registry is asked: the Schematizer, or another one that has Confluent's API, and nothing that has neither."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import pytest

from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import RegistrySettings
from transformer.routing.catalogue import open_catalogue
from transformer.routing.confluent import ConfluentCatalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

SUBJECTS = json.dumps(["cdc.shop.orders-value"])
NOTHING = json.dumps({"error_code": 404, "message": "HTTP 404 Not Found"})


@contextmanager
def serving(answers: dict[str, str], otherwise: str) -> Iterator[RegistrySettings]:
    """Answers these paths, and 404 to all others."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path.partition("?")[0])
            self.send_response(404 if body is None else 200)
            content = (otherwise if body is None else body).encode()
            self.send_header("Content-Type", "application/json" if content.startswith((b"{", b"[")) else "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield RegistrySettings(url=f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()


def test_another_registry_is_known_by_its_subjects() -> None:
    with serving({"/subjects": SUBJECTS}, NOTHING) as settings:
        catalogue = open_catalogue(settings)
        assert isinstance(catalogue, ConfluentCatalogue)
        catalogue.close()


@pytest.mark.parametrize("otherwise", [NOTHING, "<html>default backend - 404</html>"])
def test_a_proxy_whose_registry_is_away_is_none(otherwise: str) -> None:
    """Taken for one, it would choose a target's topic by its name, without a look at what is personal."""
    with serving({}, otherwise) as settings, pytest.raises(CdcError) as caught:
        open_catalogue(settings)
    assert caught.value.code is Code.REGISTRY_REFUSED
