"""The commands of a program that ask the one that runs: they use its operations port."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol, TypeVar
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.operations import JSON_TYPE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    class HasOperations(Protocol):
        """The settings of a program with an operations port."""

        @property
        def operations_address(self) -> str: ...
        @property
        def operations_port(self) -> int: ...


_SECONDS = 5.0

T = TypeVar("T")


def fetch_status(
    program: str,
    settings: HasOperations,
    text: Callable[[dict[str, Any]], str],
    *,
    as_json: bool,
) -> str:
    """The status as JSON, or as `text` makes it, which raises TypeError for another version's status. CdcError
    PROGRAM_UNREACHABLE if no program of this version answers.
    """
    return ask(program, settings, "status", lambda body: body.decode().strip() if as_json else text(json.loads(body)))


def ask(
    program: str,
    settings: HasOperations,
    path: str,
    read: Callable[[bytes], T],
    names: Sequence[str] | None = None,
) -> T:
    """Read the answer with `read`; with `names`, the answer to a command. CdcError PROGRAM_UNREACHABLE if no
    program answers, or if `read` raises ValueError, TypeError or KeyError.
    """
    address = settings.operations_address
    host = f"[{address}]" if ":" in address else address
    url = f"http://{host}:{settings.operations_port}/{path}"
    body = None if names is None else json.dumps(names).encode()
    request = Request(url, body, {"Content-Type": JSON_TYPE})
    opener = build_opener(ProxyHandler({}))  # no proxy: the address is on this machine
    try:
        with opener.open(request, timeout=_SECONDS) as answer:
            return read(answer.read())
    except (OSError, ValueError, TypeError, KeyError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise CdcError(
            Code.PROGRAM_UNREACHABLE,
            f"No {program} of this version answers at {url}: {reason}.",
            f"Start it, or set {program}.operations_address and operations_port to what it serves.",
        ) from error
