"""Reads a secret that a file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from pathlib import Path


def read_secret(path: Path, named_by: str) -> str:
    """Return the file's text without surrounding white space. named_by: what names the file. CdcError CONFIG_FILE or
    CONFIG_INVALID.
    """
    try:
        value = path.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8, or its name holds a null byte"
        raise CdcError(
            Code.CONFIG_FILE,
            f"The file {path}, named by {named_by}, cannot be read: {reason}.",
            "Correct the path, or let the program's user read the file.",
        ) from None
    if not value:
        raise CdcError(
            Code.CONFIG_INVALID, f"The file {path}, named by {named_by}, is empty.", "Write the secret into it."
        )
    return value
