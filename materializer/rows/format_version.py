"""The format version that every value of a state begins with. A build reads its own version and the one before."""

from __future__ import annotations

from cdc_common.errors.codes import CdcError, Code

FORMAT_VERSION = 1  # there is none before it
VERSION_BYTE = bytes([FORMAT_VERSION])


def check_version(value: bytes) -> None:
    """Raise CdcError(STATE_FORMAT) for a value of a newer build."""
    if value[:1] != VERSION_BYTE:
        raise CdcError(
            Code.STATE_FORMAT,
            f"The state holds a value of format version {value[0] if value else 'none'}; this build reads version "
            f"{FORMAT_VERSION}.",
            "Run the newer version of the materializer that wrote it.",
        )
