"""oidc-provider, an OIDC server of its own for Node.js, as a child process."""

from __future__ import annotations

import json
import re
import subprocess
from typing import TYPE_CHECKING, Any, NamedTuple, Self
from urllib.parse import urljoin

import httpx
from joserfc.jwk import RSAKey

from dev.local_stack.process.network import free_ports
from tests.support import node_packages

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

AUDIENCE = "https://registry.example"
WEB = "registry-web"
SECRET = "secret"
_MAX_STEPS = 20


def new_key(key_id: str) -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": key_id, "use": "sig", "alg": "RS256"})


class Visited(NamedTuple):
    """`urls`: where a browser was led, in order; `answer`: the last one."""

    urls: list[str]
    answer: httpx.Response


class OidcServer:
    """A context manager. `keys`: it signs with the first. `lifetimes`: seconds of a token, by the service's name."""

    def __init__(self, redirect_uri: str, keys: list[RSAKey], lifetimes: Mapping[str, int]) -> None:
        [self._port] = free_ports(1)
        self.url = f"http://127.0.0.1:{self._port}"
        self.keys = keys
        self._settings = {"audience": AUDIENCE, "redirectUri": redirect_uri, "lifetimes": dict(lifetimes)}
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        program, script = node_packages.node(), node_packages.script("oidc_server.js")
        keys = [key.as_dict(private=True) for key in self.keys]
        settings = json.dumps({"port": self._port, "keys": keys, **self._settings})
        self._process = subprocess.Popen(
            [program, str(script), settings], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line.strip() == self.url, line

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=60)

    def token(self, service: str, audience: str = AUDIENCE) -> str:
        """The JWT that the service gets for its secret."""
        form = {"grant_type": "client_credentials", "scope": "registry.write", "resource": audience}
        answer = httpx.post(f"{self.url}/token", data=form, auth=(service, SECRET), timeout=60)
        assert answer.status_code == 200, answer.text
        token: str = answer.json()["access_token"]
        return token


def visit(browser: httpx.Client, url: str, name: str) -> Visited:
    """Follows redirects, and fills in the server's forms as a person does: the name, and consent."""
    urls = [url]
    answer = browser.get(url)
    for _ in range(_MAX_STEPS):
        if answer.is_redirect:
            urls.append(urljoin(urls[-1], answer.headers["location"]))
            answer = browser.get(urls[-1])
        elif (form := _form(answer)) is not None:
            urls.append(urljoin(urls[-1], form.pop("action")))
            answer = browser.post(urls[-1], data={**form, "login": name, "password": "any"})
        else:
            return Visited(urls, answer)
    raise AssertionError(urls)


def _form(answer: httpx.Response) -> dict[str, Any] | None:
    """The form of the server's page, with its action."""
    action = re.search(r'<form[^>]* action="([^"]*/interaction/[^"]*)"', answer.text)
    prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
    return {"action": action[1], "prompt": prompt[1]} if action and prompt else None
