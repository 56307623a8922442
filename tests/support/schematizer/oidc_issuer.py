"""An OIDC issuer in this process, with real keys: it serves its documents, and signs what a test asks for."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

AUDIENCE = "schema-registry"


class TestIssuer:
    """`keys`: those that it publishes now. `answers`: how often it was asked, by path. `is_down`: it answers 503."""

    __test__ = False

    def __init__(self) -> None:
        self.first = RSAKey.generate_key(2048, {"kid": "first", "use": "sig", "alg": "RS256"})
        self.second = ECKey.generate_key("P-256", {"kid": "second", "use": "sig", "alg": "ES256"})
        self.keys: list[RSAKey | ECKey] = [self.first]
        self.answers: dict[str, int] = {}
        self.is_down = False
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def claims(self, **changed: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """The claims of a good token. A claim that is changed to None is left out."""
        now = int(time.time())
        good = {"iss": self.url, "aud": AUDIENCE, "sub": "alice", "iat": now, "nbf": now, "exp": now + 300}
        return {name: value for name, value in {**good, **changed}.items() if value is not None}

    def token(self, key: RSAKey | ECKey | None = None, **changed: Any) -> str:  # noqa: ANN401 - JSON
        signer = key or self.first
        algorithm = "ES256" if isinstance(signer, ECKey) else "RS256"
        return jwt.encode({"alg": algorithm, "kid": signer.kid}, self.claims(**changed), signer)

    def _documents(self) -> dict[str, Any]:
        return {
            "/.well-known/openid-configuration": {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            },
            "/jwks": KeySet(list(self.keys)).as_dict(),
        }

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.answers[self.path] = issuer.answers.get(self.path, 0) + 1
                document = issuer._documents().get(self.path)
                self.send_response(503 if issuer.is_down else 404 if document is None else 200)
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(json.dumps(document).encode())

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's own signature
                pass

        return Handler
