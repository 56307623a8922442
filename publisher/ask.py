"""`cassandra-publisher status`: what the publisher on this machine says of itself."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from cdc_program.errors import CdcError, Code
from publisher.status import Status, text

if TYPE_CHECKING:
    from cdc_program.settings import PublisherSettings

_SECONDS = 5.0


def ask(settings: PublisherSettings, *, as_json: bool) -> str:
    """CdcError PROGRAM_SILENT if nobody answers."""
    url = f"http://{settings.operations_address}:{settings.operations_port}/status"
    opener = build_opener(ProxyHandler({}))  # it is this machine's
    try:
        with opener.open(url, timeout=_SECONDS) as answer:
            body = answer.read()
        return body.decode().strip() if as_json else text(Status.from_json(json.loads(body)))
    except (OSError, ValueError, TypeError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise CdcError(
            Code.PROGRAM_SILENT,
            f"No publisher of this version answers at {url}: {reason}.",
            "Start it, or give the address and port that it serves: publisher.operations_address, operations_port.",
        ) from error
