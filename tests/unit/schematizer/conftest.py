"""The registry that the tests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """One for all tests that keep to subjects of their own."""
    running = Registry(tmp_path_factory.mktemp("registry") / "registry.db").start()
    yield running
    assert running.stop() == 0, running.log


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> str:
    """A subject for this test alone, because files of tests share the registry."""
    name = f"{request.node.path.stem}-{request.node.name}-value"
    return name.replace("[", "-").replace("]", "")
