"""The `status` command of a program: it reads /status at the operations port of the program on this machine."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import ProxyHandler, build_opener

from cdc_program.errors import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Callable

    from cdc_program.settings import FillerSettings, PublisherSettings

_SECONDS = 5.0


def fetch_status(
    program: str,
    settings: PublisherSettings | FillerSettings,
    text: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> str:
    """The status as JSON, or as `text` makes it, which raises TypeError for another version's status. CdcError
    PROGRAM_UNREACHABLE if no program of this version answers.
    """
    url = f"http://{settings.operations_address}:{settings.operations_port}/status"
    opener = build_opener(ProxyHandler({}))  # no proxy: the address is on this machine
    try:
        with opener.open(url, timeout=_SECONDS) as answer:
            body = answer.read()
        return body.decode().strip() if as_json else text(json.loads(body))
    except (OSError, ValueError, TypeError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise CdcError(
            Code.PROGRAM_UNREACHABLE,
            f"No {program} of this version answers at {url}: {reason}.",
            f"Start it, or set {program}.operations_address and operations_port to what it serves.",
        ) from error
