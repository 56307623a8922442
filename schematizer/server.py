"""Runs the registry's HTTP service in this process."""

from __future__ import annotations

import errno
import socket
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import structlog
import uvicorn
from sqlalchemy.exc import SQLAlchemyError

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.operations import Operations
from cdc_common.settings.describe import mask_url
from schematizer.application import application
from schematizer.catalogue.rules import Rules
from schematizer.catalogue.usage import Usage
from schematizer.confluent.store import Store
from schematizer.housekeeping import Housekeeping
from schematizer.kafka import RegistrationTopic
from schematizer.measures.offsets import Offsets
from schematizer.measures.sampler import NoMeasures, Sampler
from schematizer.metrics import RegistryMetrics
from schematizer.model.database import Database, unusable_database
from schematizer.registration.mirror import Mirror, adopt
from schematizer.security.connections import timed_connections
from schematizer.security.service import Security
from schematizer.service import Catalogue

if TYPE_CHECKING:
    from fastapi import FastAPI

    from schematizer.measures.sampler import Measures
    from schematizer.security.tls import ServerCertificate
    from schematizer.settings import SchematizerSettings, Settings

_STOP_SECONDS = 3  # for requests that are being answered, so that a stop ends well within 10 s
_BEAT_SECONDS = 1


def serve_registry(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT; CdcError PORT_IN_USE, CONFIG_INVALID, REGISTRY_DATABASE, REGISTRY_OPEN or
    REGISTRY_CERTIFICATE if it cannot start.
    """
    own = settings.schematizer
    listener = _listen(own.host, own.port)
    database = Database(own.database_url)
    security = Security(own, database)
    rules = Rules(own.pii_topic_prefix, tuple(own.documented_namespaces), bool(own.registrations_topic))
    usage, shown_url = Usage(database), mask_url(own.database_url)
    mirror = Mirror(rules.pii_prefix, usage)
    _adopt(database, mirror)
    store, catalogue = Store(database, mirror), Catalogue(database, rules, usage)
    catalogue.search.build()

    def status() -> dict[str, Any]:
        return {"database": shown_url, **metrics.as_json()}

    operations = Operations(own.operations_address, own.operations_port, status, has_core=False)
    metrics = RegistryMetrics(operations.registry, store, catalogue.census)
    topic = RegistrationTopic(settings.kafka, own.registrations_topic) if own.registrations_topic else None
    try:
        with operations, Housekeeping(usage, catalogue.outbox, topic), ExitStack() as running:
            measures = _measures(running, catalogue, settings)
            security.warn()
            app = application(store, catalogue, metrics, security.access, measures, security)
            _run(app, listener, operations, security.certificate, own)
    finally:
        listener.close()
        database.close()


def _adopt(database: Database, mirror: Mirror) -> None:
    try:
        adopted = adopt(database, mirror)
    except SQLAlchemyError as error:
        raise unusable_database(database.url, error) from error
    if adopted:
        structlog.get_logger(__name__).info("versions added to the catalogue", versions=adopted)


def _measures(running: ExitStack, catalogue: Catalogue, settings: Settings) -> Measures:
    """Kafka is asked only if its brokers were named: the default is any machine's own."""
    if "bootstrap_servers" not in settings.kafka.model_fields_set:
        return NoMeasures()

    def topics() -> list[str]:
        return [topic.name for topic in catalogue.topics.every()]

    period = settings.schematizer.sample_seconds
    return running.enter_context(Sampler(Offsets(settings.kafka), topics, period))


def _run(
    app: FastAPI,
    listener: socket.socket,
    operations: Operations,
    certificate: ServerCertificate | None,
    settings: SchematizerSettings,
) -> None:
    """The event loop shows that it lives, and looks for a renewed certificate."""

    async def beat() -> None:
        operations.beat()
        if certificate is not None:
            certificate.reload_if_renewed()

    config = uvicorn.Config(
        app,
        http=timed_connections(settings.body_seconds),
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=settings.trusted_proxies,
        limit_concurrency=settings.max_connections,
        ssl_context_factory=(lambda *_: certificate.context) if certificate else None,
        timeout_graceful_shutdown=_STOP_SECONDS,
        callback_notify=beat,
        timeout_notify=_BEAT_SECONDS,
    )
    _Server(config, mask_url(settings.database_url)).run(sockets=[listener])


class _Server(uvicorn.Server):
    """Logs that it is ready once it accepts requests."""

    def __init__(self, config: uvicorn.Config, database: str) -> None:
        super().__init__(config)
        self._database = database

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            url = f"{'https' if self.config.is_ssl else 'http'}://{host}:{port}"
            structlog.get_logger(__name__).info("ready", url=url, database=self._database)


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
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
    # Connections inherit it. Without it an answer waits 40 ms for the acknowledgement of its own first packet: asyncio
    # sets it only for sockets that were made with a protocol.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener
