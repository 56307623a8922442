"""Logging of all programs to stderr: structlog as readable text on a terminal, and as JSON lines everywhere else.

Row values and secrets are never logged: events have names, positions, counts and codes. What other libraries log or
warn of has the same output.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import structlog

if TYPE_CHECKING:
    from structlog.typing import Processor

    from cdc_common.settings import LogSettings

_LEAST_LEVELS = {
    # At debug level these log what they send and receive, including row values.
    "cassandra": logging.WARNING,
    "py4j": logging.WARNING,
    "pyspark": logging.INFO,
    "sqlalchemy": logging.WARNING,
    "alembic": logging.WARNING,
    "sqlglot": logging.ERROR,  # what it cannot parse is an error of the caller's
    "httpx": logging.WARNING,
    "httpcore": logging.WARNING,
    "httpx2": logging.WARNING,
    "httpcore2": logging.WARNING,
    "urllib3": logging.WARNING,
    "uvicorn": logging.WARNING,
}
_SHARED: list[Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
]


def configure_logging(settings: LogSettings, stream: TextIO | None = None) -> None:
    """Sends the records of structlog and logging from the level on to the stream (stderr), in the settings' format."""
    output = stream or sys.stderr
    terminal = output.isatty()
    console = settings.format == "console" or (settings.format == "auto" and terminal)
    handler = logging.StreamHandler(output)
    handler.addFilter(_is_reported_once)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*_SHARED, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_renderers(console=console, colors=terminal),
            ],
        )
    )
    level = logging.getLevelNamesMapping()[settings.level.upper()]
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    logging.captureWarnings(capture=True)
    for name, least in _LEAST_LEVELS.items():
        logging.getLogger(name).setLevel(max(level, least))
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_SHARED,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )


def _is_reported_once(record: logging.LogRecord) -> bool:
    """Py4J logs each lost connection and each failed callback with its stack trace, and raises it as well: the job then
    reports it in its own words.
    """
    return not (record.exc_info and "py4j" in Path(record.pathname).parts)


def _renderers(*, console: bool, colors: bool) -> list[Processor]:
    """The last processors. Tracebacks are plain, because rich ones show local variables and so row values."""
    if console:
        plain = structlog.dev.plain_traceback
        return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
