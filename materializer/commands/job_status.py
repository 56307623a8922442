"""`cassandra-materializer status` and `retry`: ask the running driver."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cdc_program.errors import CdcError, Code
from cdc_program.status_client import ask
from materializer.job.status import text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cdc_program.settings import MaterializerSettings

T = TypeVar("T")

STOPPED_EXIT_STATUS = 4  # of data, as the codes of what stops a raw partition


def print_status(settings: MaterializerSettings, *, as_json: bool) -> None:
    """Print what is stopped, and a summary. Exits with STOPPED_EXIT_STATUS if a raw partition is stopped."""

    def read(body: bytes) -> tuple[str, bool]:
        status: dict[str, Any] = json.loads(body)
        return body.decode().strip() if as_json else text(status), bool(status["stopped"])

    shown, is_stopped = _ask(settings, "status", read)
    click.echo(shown)
    if is_stopped:
        raise SystemExit(STOPPED_EXIT_STATUS)


def retry(settings: MaterializerSettings, raw_partitions: Sequence[str]) -> None:
    """Make the next try of these stopped raw partitions, or of all, happen now."""
    due = _ask(settings, "retry", _read_retried, raw_partitions)
    for name in due:
        click.echo(f"{name} is tried now")
    for name in sorted(set(raw_partitions) - set(due)):
        click.echo(f"{name} is not stopped, or is being tried already")
    if not raw_partitions and not due:
        click.echo("nothing waits for another try")


def _read_retried(body: bytes) -> list[str]:
    retried: list[str] = json.loads(body)["retried"]
    return retried


def _ask(
    settings: MaterializerSettings, path: str, read: Callable[[bytes], T], names: Sequence[str] | None = None
) -> T:
    try:
        return ask("materializer", settings, path, read, names)
    except CdcError as error:
        if error.code is not Code.PROGRAM_UNREACHABLE:
            raise
        fix = f"{error.fix} Offsets and lag without it: `cassandra-materializer state ls`."
        raise CdcError(error.code, error.problem, fix) from error
