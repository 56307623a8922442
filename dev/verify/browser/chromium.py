"""Debian's Chromium, without its own network traffic."""

from __future__ import annotations

import shutil

from cdc_common.errors.codes import CdcError, Code

# Without these Chromium asks its maker's servers at every start.
FLAGS = (
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str:
    """Its path. CdcError if there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise CdcError(
        Code.STACK_MISSING, "No Chromium is on the PATH to take pictures.", "Install Debian's package chromium."
    )
