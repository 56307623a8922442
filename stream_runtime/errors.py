"""Errors of any job: an unknown format, and an exception that no code describes."""

from __future__ import annotations

import os
import traceback

from cassandra_storage.formats.errors import FormatError
from cdc_common.errors.codes import CdcError, Code
from cdc_common.messages.errors import MessageError


class ValueFreeError(Exception):
    """An exception whose text holds no row values."""


_WITHOUT_VALUES = (CdcError, FormatError, MessageError, ValueFreeError)


def check_format(what: str, found: int, own: int) -> None:
    """CdcError(STATE_FORMAT) unless `found` is this build's format version or the one before it."""
    oldest = max(1, own - 1)
    if not oldest <= found <= own:
        versions = f"version {own}" if oldest == own else f"versions {oldest} and {own}"
        raise CdcError(
            Code.STATE_FORMAT,
            f"{what} has format version {found}; this build reads {versions}.",
            "Run the version of the program that wrote it, or a later one that still reads it.",
        )


def unexpected(where: str, error: Exception) -> CdcError:
    """CdcError(UNEXPECTED) for an exception that no code describes. `where`: the topic or source partition."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""  # noqa: PTH119
    return CdcError(
        Code.UNEXPECTED,
        f"An unexpected exception has stopped {where}: {_name_of(error)}{place}.",
        "This is a defect: report it with the trace in the driver's log. A later version may continue from here.",
    )


def trace_of(error: BaseException) -> str:
    """The frames and types of an exception and of those that caused it. A text that may hold row values is left out."""
    chain = [error]
    while (cause := chain[-1].__cause__ or chain[-1].__context__) is not None and cause not in chain:
        chain.append(cause)
    return "\n".join("".join([*traceback.format_tb(cause.__traceback__), _name_of(cause)]) for cause in reversed(chain))


def _name_of(error: BaseException) -> str:
    name = type(error).__qualname__
    if isinstance(error, _WITHOUT_VALUES):
        return f"{name}: {error}"
    return f"{name}: {error.strerror}" if isinstance(error, OSError) and error.strerror else name
