"""The registry's operations port: /metrics, /health and /status."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.process.network import free_ports
from schematizer.server import serve_registry
from schematizer.settings import SchematizerSettings, Settings
from tests.support.http_get import get
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERSIONS = "/subjects/{subject:path}/versions"


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Registry]:
    """A registry with an operations port."""
    running = Registry(tmp_path / "registry.db", operations_port=free_ports(1)[0]).start()
    yield running
    assert running.stop() == 0, running.log


def samples(registry: Registry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return the values by name and labels."""
    status, text = get(registry.operations_port, "/metrics")
    assert status == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def counted(registry: Registry) -> dict[tuple[str, str, str], float]:
    """Requests by method, route and status."""
    found = {}
    for (name, labels), value in samples(registry).items():
        if name == "cdc_schematizer_requests_total":
            by_name = dict(labels)
            found[by_name["method"], by_name["route"], by_name["status"]] = value
    return found


def value(registry: Registry, name: str, **labels: str) -> float | None:
    return samples(registry).get((f"cdc_schematizer_{name}", frozenset(labels.items())))


def test_requests_by_route_and_status(own: Registry) -> None:
    own.register("a%2Fb", "string")
    own.register("c", "string")
    own.register("c", "integer")
    own.call("GET", "/subjects")
    own.call("GET", "/config/nobody")
    assert counted(own) == {
        ("POST", VERSIONS, "200"): 2,
        ("POST", VERSIONS, "422"): 1,
        ("GET", "/subjects", "200"): 1,
        ("GET", "/config/{subject:path}", "404"): 1,
    }
    assert value(own, "request_seconds_count", method="POST", route=VERSIONS) == 3
    assert value(own, "request_seconds_bucket", method="POST", route=VERSIONS, le="+Inf") == 3
    spent = value(own, "request_seconds_sum", method="POST", route=VERSIONS)
    assert spent is not None
    assert 0 < spent < 60


def test_what_clients_invent_makes_no_series(own: Registry) -> None:
    """Each path and method of a scanner would be a series forever."""
    for number in range(5):
        own.call("GET", f"/nowhere-{number}")
        own.call(f"FIND{number}", f"/subjects/x{number}/versions")
    assert counted(own) == {("GET", "other", "404"): 5, ("other", VERSIONS, "405"): 5}


def test_what_the_database_holds(own: Registry) -> None:
    own.register("a", "string")
    own.register("b", "string")
    own.call("PUT", "/config/b", {"compatibility": "NONE"})
    own.register("b", "int")
    assert [value(own, name) for name in ("subjects", "versions", "schemas")] == [2, 3, 2]
    own.call("DELETE", "/subjects/a")
    assert [value(own, name) for name in ("subjects", "versions", "schemas")] == [1, 2, 2]
    assert value(own, "database_usable") == 1
    status = json.loads(get(own.operations_port, "/status")[1])
    assert status == {"database": f"sqlite:///{own.database}", "subjects": 1, "versions": 2, "schemas": 2}


def test_a_database_that_fails(own: Registry) -> None:
    """The scrape tells it, whether or not anybody asks the API; both are logged."""
    own.register("a", "string")
    for file in own.database.parent.glob("registry.db*"):
        file.write_bytes(b"x" * 5000)
    assert value(own, "database_usable") == 0
    assert value(own, "subjects") is None
    assert value(own, "database_errors_total") == 0
    own.call("GET", "/schemas/ids/1")
    assert value(own, "database_errors_total") == 1
    assert counted(own)["GET", "/schemas/ids/{schema_id}", "500"] == 1
    assert "problem" in json.loads(get(own.operations_port, "/status")[1])
    assert get(own.operations_port, "/health")[0] == 200, "starting it again would repair nothing"
    failed = [json.loads(line) for line in own.log if '"database failed"' in line]
    assert {event["path"] for event in failed} == {"/metrics", "/schemas/ids/1"}


def test_it_does_not_speak_of_a_core_that_it_does_not_use(own: Registry) -> None:
    names = {name for name, _ in samples(own)}
    assert "cdc_compiled" not in names
    assert "process_resident_memory_bytes" in names


def test_the_event_loop_is_what_is_well(own: Registry) -> None:
    """It beats without requests, too."""
    health = json.loads(get(own.operations_port, "/health")[1])
    assert health["ok"]
    time.sleep(4)
    assert json.loads(get(own.operations_port, "/health")[1])["loop_seconds_ago"] < 3.5


def test_a_port_in_use(own: Registry, tmp_path: Path) -> None:
    service = SchematizerSettings(
        port=0, database_url=f"sqlite:///{tmp_path}/other.db", operations_port=own.operations_port
    )
    settings = Settings(schematizer=service)
    with pytest.raises(CdcError) as caught:
        serve_registry(settings)
    assert caught.value.code is Code.PORT_IN_USE
    assert str(own.operations_port) in caught.value.problem
