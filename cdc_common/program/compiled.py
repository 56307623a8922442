"""Says at a program's start that it runs without the native core (cdc_native)."""

from __future__ import annotations

import structlog

import cdc_native
from cdc_common.errors.codes import Code

log = structlog.get_logger(__name__)


def warn_if_not_compiled() -> None:
    """Warns with CDC-007 unless the native core is in use."""
    if cdc_native.is_enabled():
        return
    if cdc_native.is_compiled():
        reason, fix = "CDC_NATIVE=0 switches its native core off", "Remove CDC_NATIVE=0 from its environment."
    else:
        reason = "its native core is not compiled"
        fix = "Install a wheel or an archive built by `make dist`, or install again where there is a C compiler."
    log.warning(
        "not compiled",
        code=Code.NOT_COMPILED.text,
        problem=f"This program runs as plain Python, for {reason}: the results are the same, but it uses several times "
        "the CPU.",
        fix=fix,
    )
