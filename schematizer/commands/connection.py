"""The service that the commands talk to: the one of `[registry]`."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from cdc_common.clients.registry_connection import registry_login, registry_tls
from cdc_common.errors.codes import CdcError, Code
from cdc_common.settings.describe import mask_url
from schematizer.client import SchematizerClient, SchematizerError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from cdc_common.settings import RegistrySettings

_ATTEMPTS = 3


@contextmanager
def service(settings: RegistrySettings) -> Iterator[SchematizerClient]:
    """Open a client. It raises CdcError REGISTRY_UNREACHABLE or REGISTRY_REFUSED in place of the client's errors."""
    login, tls = registry_login(settings), registry_tls(settings)
    try:
        with SchematizerClient(settings.url, login=login, tls=tls, attempts=_ATTEMPTS) as client:
            yield client
    except SchematizerError as error:
        code = Code.REGISTRY_UNREACHABLE if error.is_retried else Code.REGISTRY_REFUSED
        raise CdcError(
            code,
            f"cassandra-schematizer at {mask_url(settings.url)}: {error}",
            "Start it (cassandra-schematizer serve), or correct registry.url; another registry has no catalogue.",
        ) from error
