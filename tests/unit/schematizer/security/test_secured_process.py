"""A registry as it is run, over TLS and with keys: Confluent's client, the programs' own, slow clients, a renewed
certificate, and the commands.
"""

from __future__ import annotations

import json
import socket
import ssl
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from pydantic import SecretStr

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings import RegistrySettings
from schematizer.cli import main
from schematizer.commands import documentation
from schematizer.security import tls
from schematizer.settings import Settings
from tests.support.e2e.certificates import Authority
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SUBJECT = "cdc.shop.orders-value"
RECORD = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
BODY_SECONDS = 2.0


def command(folder: Path, *arguments: str) -> list[str]:
    """The lines that the command prints."""
    url = f"sqlite:///{folder}/registry.db"
    result = CliRunner().invoke(main, [*arguments, "--database-url", url, "--config", str(folder / "none.toml")])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def new_key(folder: Path, grant: str) -> tuple[str, str, str]:
    """(key id, secret, bearer), as the command prints them."""
    lines = command(folder, "keys", "create", "orders", "--grant", grant)
    key_id, secret, bearer = (line.partition(":")[2].strip() for line in lines[-3:])
    return key_id, secret, bearer


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("secured")
    (made / "none.toml").touch()
    return made


@pytest.fixture(scope="module")
def authority(folder: Path) -> Authority:
    return Authority(folder)


@pytest.fixture(scope="module")
def registry(folder: Path, authority: Authority) -> Iterator[Registry]:
    settings = {
        "schematizer.open_reads": "false",
        "schematizer.open_writes": "false",
        "schematizer.tls_certificate_file": str(authority.identity_file("server", ["127.0.0.1"])),
        "schematizer.tls_minimum_version": "1.3",
        "schematizer.tls_client_ca_file": str(authority.file),
        "schematizer.body_seconds": str(BODY_SECONDS),
    }
    new_key(folder, "admin:*")
    running = Registry(folder / "registry.db", settings=settings).start()
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture(scope="module")
def identity(authority: Authority) -> Path:
    return authority.identity_file("client")


def tls_settings(registry: Registry, authority: Authority, identity: Path) -> dict[str, str]:
    return {
        "url": registry.url,
        "ssl.ca.location": str(authority.file),
        "ssl.certificate.location": str(identity),
    }


def context_of(authority: Authority, identity: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(authority.file))
    context.load_cert_chain(identity)
    return context


def connected(registry: Registry, context: ssl.SSLContext) -> ssl.SSLSocket:
    host, _, port = registry.url.removeprefix("https://").partition(":")
    return context.wrap_socket(socket.create_connection((host, int(port)), timeout=30), server_hostname=host)


def test_confluents_client_by_basic_and_bearer(
    registry: Registry, folder: Path, authority: Authority, identity: Path
) -> None:
    key_id, secret, bearer = new_key(folder, "writer:cdc.shop")
    settings = tls_settings(registry, authority, identity)
    schema = Schema(json.dumps(RECORD), "AVRO")
    token = {
        "bearer.auth.credentials.source": "STATIC_TOKEN",
        "bearer.auth.token": bearer,
        "bearer.auth.logical.cluster": "none",
        "bearer.auth.identity.pool.id": "none",
    }
    with SchemaRegistryClient({**settings, "basic.auth.user.info": f"{key_id}:{secret}"}) as basic:
        schema_id = basic.register_schema(SUBJECT, schema)
        with pytest.raises(SchemaRegistryError) as refused:
            basic.register_schema("cdc.other.t-value", schema)
        assert refused.value.http_status_code == 403
    with SchemaRegistryClient({**settings, **token}) as with_bearer:
        assert with_bearer.register_schema(SUBJECT, schema) == schema_id
        assert with_bearer.get_schema(schema_id).schema_str
    with SchemaRegistryClient(settings) as nobody, pytest.raises(SchemaRegistryError) as unknown:
        nobody.register_schema(SUBJECT, schema)
    assert unknown.value.http_status_code == 401
    assert secret not in "".join(registry.log)


def test_the_programs_own_client(registry: Registry, folder: Path, authority: Authority, identity: Path) -> None:
    key_id, secret, _ = new_key(folder, "writer:cdc.shop")
    settings = RegistrySettings(
        url=registry.url,
        username=key_id,
        password=SecretStr(secret),
        ssl_ca_file=authority.file,
        ssl_identity_file=identity,
    )
    with RegistryClient(settings) as client:
        assert client.register(SUBJECT, RECORD) == client.lookup(SUBJECT, RECORD)
    with RegistryClient(settings.model_copy(update={"password": SecretStr("wrong")})) as client:
        with pytest.raises(CdcError, match=r"registry\.username") as caught:
            client.register(SUBJECT, RECORD)
        assert caught.value.code is Code.REGISTRY_REFUSED


def test_the_audit_log_by_command(registry: Registry, folder: Path, authority: Authority, identity: Path) -> None:
    key_id, secret, _ = new_key(folder, "writer:cdc.audited")
    settings = {**tls_settings(registry, authority, identity), "basic.auth.user.info": f"{key_id}:{secret}"}
    with SchemaRegistryClient(settings) as client:
        client.register_schema("cdc.audited.t-value", Schema(json.dumps(RECORD), "AVRO"))
    found = [json.loads(line) for line in command(folder, "audit") if line.startswith("{")]
    [written] = [record for record in found if record["namespace"] == "cdc.audited"]
    assert (written["actor"], written["result"], written["address"]) == ("key:orders", "done", "127.0.0.1")
    assert any(record["action"] == "keys create" and record["actor"].startswith("command:") for record in found)
    assert secret not in json.dumps(found)
    [revoked] = [line for line in command(folder, "keys", "revoke", key_id) if line.startswith("{")]
    assert json.loads(revoked)["is_usable"] is False
    assert any(key_id in line for line in command(folder, "keys", "list"))


def test_who_speaks_no_tls_or_an_old_one_or_shows_no_certificate(
    registry: Registry, authority: Authority, identity: Path
) -> None:
    old = context_of(authority, identity)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert answer_to(registry, context_of(authority, identity)).startswith(b"HTTP/1.1 401")
    assert not answer_to(registry, old)
    anonymous = ssl.create_default_context(cafile=str(authority.file))
    assert not answer_to(registry, anonymous)


def answer_to(registry: Registry, context: ssl.SSLContext) -> bytes:
    """Nothing if the connection is refused: TLS 1.3 says so only after the client's first bytes."""
    try:
        with connected(registry, context) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            return connection.recv(100)
    except (ssl.SSLError, ConnectionError):
        return b""


@pytest.mark.parametrize(
    ("begin", "answer"),
    [
        (b"GET / HT", b""),
        (b"", b""),
        (b"POST /api/v1/namespaces HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 408"),
    ],
    ids=["head", "nothing", "body"],
)
def test_slow_clients(registry: Registry, authority: Authority, identity: Path, begin: bytes, answer: bytes) -> None:
    """A byte now and then does not keep the connection."""
    with connected(registry, context_of(authority, identity)) as connection:
        connection.sendall(begin)
        connection.settimeout(BODY_SECONDS / 4)
        deadline, received = time.monotonic() + 30, None
        while received is None:
            assert time.monotonic() < deadline, "the connection is still open"
            try:
                received = connection.recv(100)
            except TimeoutError:
                if begin:
                    connection.sendall(b"x")
            except OSError:
                received = b""
    assert received.startswith(answer)
    assert bool(received) == bool(answer)


def test_a_renewed_certificate(registry: Registry, authority: Authority, identity: Path, folder: Path) -> None:
    context = context_of(authority, identity)

    def serial() -> str:
        with connected(registry, context) as connection:
            found = connection.getpeercert()
            assert found is not None
            return str(found["serialNumber"])

    first = serial()
    good = (folder / "server.pem").read_bytes()
    (folder / "server.pem").write_bytes(good[: len(good) // 2])
    time.sleep(tls.RELOAD_SECONDS + 2)
    assert serial() == first, "half a file does not replace a good one"
    authority.identity_file("server", ["127.0.0.1"])
    deadline = time.monotonic() + 60
    while serial() == first:
        assert time.monotonic() < deadline
        time.sleep(1)
    events = [json.loads(line)["event"] for line in registry.log]
    assert "certificate not renewed" in events
    assert "certificate renewed" in events


def test_it_does_not_start_without_a_login(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/registry.db"
    (tmp_path / "none.toml").touch()
    arguments = ["serve", "--host", "0.0.0.0", "--port", "0", "--database-url", url, "--operations-port", "0"]  # noqa: S104 - what is tried
    result = CliRunner().invoke(main, [*arguments, "--config", str(tmp_path / "none.toml")])
    assert result.exit_code == 2
    assert result.stderr.startswith("error CDC-037")
    assert "schematizer.open_writes" in result.stderr


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "none.toml").touch()
    arguments = ["serve", "--port", "0", "--database-url", f"sqlite:///{tmp_path}/registry.db"]
    arguments += ["--set", f"schematizer.tls_certificate_file={tmp_path}/none.toml"]
    result = CliRunner().invoke(main, [*arguments, "--config", str(tmp_path / "none.toml")])
    assert result.exit_code == 2
    assert result.stderr.startswith("error CDC-038")


def test_topics_are_assigned_to_who_may_write(
    registry: Registry, folder: Path, authority: Authority, identity: Path
) -> None:
    key_id, secret, _ = new_key(folder, "writer:cdc.shop")
    settings = RegistrySettings(
        url=registry.url,
        username=key_id,
        password=SecretStr(secret),
        ssl_ca_file=authority.file,
        ssl_identity_file=identity,
    )
    value = {**RECORD, "fields": [{"name": "name", "type": "string"}]}
    with SchematizerClient.of_settings(settings) as client:
        client.check_reachable()
        assert client.assigned_topics("cdc.shop", "people") == []
        assert client.register("cdc.shop", "avro", value, source="people", key=RECORD).topic == "cdc.shop.people"
        assert [topic.name for topic in client.assigned_topics("cdc.shop", "people")] == ["cdc.shop.people"]
        with pytest.raises(CdcError, match="role writer") as refused:
            client.register("cdc.other", "avro", value, source="people", key=RECORD)
        assert refused.value.code is Code.REGISTRY_REFUSED
    with (
        SchematizerClient.of_settings(settings.model_copy(update={"ssl_ca_file": None})) as stranger,
        pytest.raises(CdcError) as untrusted,
    ):
        stranger.check_reachable()
    assert untrusted.value.code is Code.REGISTRY_UNREACHABLE
    said = folder / "people.toml"
    said.write_text(
        'namespace = "cdc.shop"\nsource = "people"\nowner = "team"\n[fields.name]\ndoc = "a name"\npii = true\n'
    )
    documentation.apply(Settings(registry=settings), [said])
    with SchematizerClient.of_settings(settings) as client:
        made = client.register("cdc.shop", "avro", value, source="people", key=RECORD)
        assert made.topic == "pii-cdc.shop.people-v2"
