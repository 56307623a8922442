"""The `status` command of a program: what the one that runs on this machine says of itself at its operations port."""

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


def ask(
    program: str,
    settings: PublisherSettings | FillerSettings,
    text: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> str:
    """`text` tells a person what /status answers, TypeError if that is another version's; CdcError PROGRAM_SILENT if
    nobody of this version answers.
    """
    url = f"http://{settings.operations_address}:{settings.operations_port}/status"
    opener = build_opener(ProxyHandler({}))  # it is this machine's
    try:
        with opener.open(url, timeout=_SECONDS) as answer:
            body = answer.read()
        return body.decode().strip() if as_json else text(json.loads(body))
    except (OSError, ValueError, TypeError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise CdcError(
            Code.PROGRAM_SILENT,
            f"No {program} of this version answers at {url}: {reason}.",
            f"Start it, or give the address and port that it serves: {program}.operations_address, operations_port.",
        ) from error
