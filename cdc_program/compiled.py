"""Whether the hot modules run compiled (`make dist` compiles them; pyproject.toml lists them)."""

from __future__ import annotations

import structlog

from cassandra_storage import vint
from cdc_program.errors import Code

log = structlog.get_logger(__name__)


def is_compiled() -> bool:
    """Checks one module: a wheel has all of them compiled, or none."""
    return not str(vint.__file__).endswith((".py", ".pyc"))


def warn_if_not_compiled() -> None:
    if not is_compiled():
        log.warning(
            "not compiled",
            code=Code.NOT_COMPILED.text,
            problem="This program runs as plain Python: the results are the same, but it uses up to twice the CPU.",
            fix="Install a wheel or an archive built by `make dist`.",
        )
