"""A registry as it is run, closed to those without a login."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from schematizer.model.database import opened
from schematizer.security.keys import ApiKeys
from tests.support.schematizer.registry_process import Registry

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

CLOSED = {"schematizer.open_reads": "false", "schematizer.open_writes": "false"}


class Key(NamedTuple):
    """`bearer`: what follows `Authorization: Bearer`."""

    key_id: str
    secret: str
    bearer: str


class SecuredRegistry:
    """A context manager. An administrator's key is there before it starts."""

    def __init__(self, folder: Path, **settings: str) -> None:
        """`settings`: more of `schematizer`."""
        file = folder / "registry.db"
        self._database_url = f"sqlite:///{file}"
        more = {f"schematizer.{name}": value for name, value in settings.items()}
        self.registry = Registry(file, settings={**CLOSED, **more})

    def __enter__(self) -> Self:
        self.new_key("admin:*")
        self.registry.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        status = self.registry.stop()
        assert error is not None or status == 0, self.registry.log

    @property
    def url(self) -> str:
        return self.registry.url

    def new_key(self, grant: str) -> Key:
        with opened(self._database_url) as database:
            made = ApiKeys(database).create("test", [grant], None, by="test")
        return Key(made.key.key_id, made.secret, made.bearer)
