"""Whether the modules that every row passes run compiled (`make dist`; pyproject.toml names them)."""

from __future__ import annotations

import structlog

from cassandra_storage import vint
from cdc_program.errors import Code

log = structlog.get_logger(__name__)


def is_compiled() -> bool:
    """Of one of them, for all: a wheel has all of them or none."""
    return not str(vint.__file__).endswith((".py", ".pyc"))


def warn_if_not() -> None:
    if not is_compiled():
        log.warning(
            "not compiled",
            code=Code.NOT_COMPILED.text,
            problem="This program runs as plain Python: the same results, for up to twice the CPU.",
            fix="Install a wheel or an archive that `make dist` made.",
        )
