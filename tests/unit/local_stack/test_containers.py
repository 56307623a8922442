"""Without a Docker engine, SERVERS=containers says so; with one, the shared fixtures run on it."""

from __future__ import annotations

import pytest

from cdc_program.errors import CdcError, Code
from local_stack.servers.choice import cassandra_cluster, kafka_broker


def test_an_unknown_choice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "clouds")
    with pytest.raises(CdcError, match="SERVERS=clouds is not known"):
        kafka_broker()


def test_no_engine_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVERS", "containers")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")
    for server in (kafka_broker(), cassandra_cluster()):
        with pytest.raises(CdcError) as caught:
            server.start()
        server.close()
        assert caught.value.code is Code.STACK_MISSING
        assert "containers" in str(caught.value)
