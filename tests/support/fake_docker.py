"""A Docker engine in memory, in the place of testcontainers and docker-py: what containers.py asks of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import pytest

TERMINATED, KILLED = 143, 137  # what Docker reports after SIGTERM and SIGKILL


class DockerException(Exception):  # noqa: N818 - docker-py's own name
    """The errors that docker-py raises."""


@dataclass
class FakeContainer:
    """Like docker.models.containers.Container: a new state is seen only after `reload`."""

    image: str
    command: list[str]
    environment: dict[str, str]
    volumes: dict[str, tuple[str, str]]
    options: dict[str, Any]
    output: str = ""
    exit_code: int | None = None
    is_paused: bool = False
    is_removed: bool = False
    executed: list[list[str]] = field(default_factory=list)
    answers: Callable[[list[str]], tuple[int, bytes]] = lambda _: (0, b"")
    attrs: dict[str, Any] = field(default_factory=dict)
    status: str = "created"

    def reload(self) -> None:
        self.attrs = {"State": {"Running": self.exit_code is None, "ExitCode": self.exit_code or 0}}
        self.status = "paused" if self.is_paused else "running" if self.exit_code is None else "exited"

    def logs(self) -> bytes:
        return self.output.encode()

    def exec_run(self, command: list[str]) -> tuple[int, bytes]:
        self.executed.append(command)
        return self.answers(command)

    def stop(self, timeout: int) -> None:
        assert timeout > 0
        assert not self.is_paused, "a paused container does not answer SIGTERM"
        self.exit_code = TERMINATED

    def kill(self) -> None:
        self.exit_code, self.is_paused = KILLED, False

    def wait(self) -> dict[str, int]:
        assert self.exit_code is not None, "it would wait forever"
        return {"StatusCode": self.exit_code}

    def pause(self) -> None:
        self.is_paused = True

    def unpause(self) -> None:
        assert self.is_paused, "Docker refuses to unpause what is not paused"
        self.is_paused = False

    def remove(self, *, force: bool, v: bool) -> None:
        assert force
        assert v
        self.is_removed = True


@dataclass
class FakeEngine:
    """`on_start` is called with each container as it starts, and may fail."""

    on_start: Callable[[FakeContainer], None] = lambda _: None
    containers: list[FakeContainer] = field(default_factory=list)
    networks: int = 0

    def run(self, container: FakeContainer) -> None:
        self.on_start(container)
        self.containers.append(container)


def make_docker_container(engine: FakeEngine) -> type:
    """Return a class that replaces testcontainers.core.container.DockerContainer."""

    class DockerContainer:
        def __init__(self, image: str) -> None:
            self.made = FakeContainer(image, [], {}, {}, {})

        def with_command(self, command: list[str]) -> Self:
            self.made.command = command
            return self

        def with_volume_mapping(self, host: str, container: str, mode: str) -> Self:
            self.made.volumes[host] = (container, mode)
            return self

        def with_kwargs(self, **options: object) -> Self:
            self.made.options = options
            return self

        def with_env(self, key: str, value: str) -> Self:
            self.made.environment[key] = value
            return self

        def start(self) -> Self:
            engine.run(self.made)
            return self

        def get_wrapped_container(self) -> FakeContainer:
            return self.made

    return DockerContainer


def make_network(engine: FakeEngine) -> type:
    """Return a class that replaces testcontainers.core.network.Network."""

    class Network:
        name = "network"

        def __init__(self, docker_network_kw: dict[str, Any]) -> None:
            assert docker_network_kw["ipam"]["pool_configs"]

        def create(self) -> Self:
            engine.networks += 1
            return self

        def remove(self) -> None:
            assert all(container.is_removed for container in engine.containers), "Docker refuses it"
            engine.networks -= 1

    return Network


def install(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """An engine that answers instead of Docker, and SERVERS=containers."""
    engine = FakeEngine()
    modules: dict[str, dict[str, Any]] = {
        "docker.errors": {"DockerException": DockerException},
        "docker.types": {
            "EndpointConfig": lambda _, **given: given,
            "IPAMConfig": dict,
            "IPAMPool": dict,
        },
        "testcontainers.core.container": {"DockerContainer": make_docker_container(engine)},
        "testcontainers.core.network": {"Network": make_network(engine)},
    }
    for name, content in modules.items():
        package, _, _ = name.partition(".")
        for prefix in (package, "testcontainers.core", name):
            if name.startswith(prefix):
                monkeypatch.setitem(sys.modules, prefix, ModuleType(prefix))
        vars(sys.modules[name]).update(content)
    monkeypatch.setenv("SERVERS", "containers")
    return engine
