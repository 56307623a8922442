"""Runs the registry's HTTP service in this process."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING, Any

import structlog
import uvicorn

from cdc_program.describe import mask_url
from cdc_program.errors import CdcError, Code
from cdc_program.operations import Operations
from schematizer.access import OpenAccess
from schematizer.application import application
from schematizer.catalogue.mirror import Mirror, adopt
from schematizer.catalogue.service import Catalogue, Rules
from schematizer.confluent.store import Store
from schematizer.metrics import RegistryMetrics
from schematizer.model.database import Database

if TYPE_CHECKING:
    from fastapi import FastAPI

    from cdc_program.settings import SchematizerSettings

_STOP_SECONDS = 5
_BEAT_SECONDS = 1


def serve_registry(settings: SchematizerSettings) -> None:
    """Serve until SIGTERM or SIGINT; CdcError PORT_IN_USE, CONFIG_INVALID or REGISTRY_DATABASE if it cannot start."""
    listener = _listen(settings.host, settings.port)
    database = Database(settings.database_url)
    rules = Rules(pii_prefix=settings.pii_topic_prefix)
    mirror = Mirror(rules.pii_prefix)
    adopt(database, mirror)
    store, shown_url = Store(database, mirror), mask_url(settings.database_url)

    def status() -> dict[str, Any]:
        return {"database": shown_url, **metrics.as_json()}

    operations = Operations(settings.operations_address, settings.operations_port, status, has_core=False)
    metrics = RegistryMetrics(operations.registry, store)
    try:
        with operations:
            host, port = listener.getsockname()[:2]
            structlog.get_logger(__name__).info("listening", url=f"http://{host}:{port}", database=shown_url)
            app = application(store, Catalogue(database, rules), metrics, OpenAccess())
            _run(app, listener, operations)
    finally:
        listener.close()
        database.close()


def _run(app: FastAPI, listener: socket.socket, operations: Operations) -> None:
    """The event loop shows that it lives."""

    async def beat() -> None:
        operations.beat()

    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_STOP_SECONDS,
        callback_notify=beat,
        timeout_notify=_BEAT_SECONDS,
    )
    uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CdcError(
                Code.PORT_IN_USE,
                f"The address {host}:{port} of schematizer.host and schematizer.port is in use.",
                f"Set schematizer.port to a free port, or stop what uses it (ss -ltnp 'sport = :{port}').",
            ) from error
        raise CdcError(
            Code.CONFIG_INVALID,
            f"Cannot listen on {host}:{port}: {error.strerror or error}.",
            "Set schematizer.host to an address of this machine, and schematizer.port to one that this user may use.",
        ) from error
