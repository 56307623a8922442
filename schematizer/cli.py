"""The console script cassandra-schematizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-schematizer",
    tables=("schematizer", "log"),
    help="The schema registry: a service with the API of Confluent's Schema Registry.",
)


@main.program_command(
    "serve",
    flags={
        "--host": "schematizer.host",
        "--port": "schematizer.port",
        "--database-url": "schematizer.database_url",
        "--operations-address": "schematizer.operations_address",
        "--operations-port": "schematizer.operations_port",
    },
)
def serve(settings: Settings) -> None:
    """Serves HTTP requests until it is stopped."""
    from schematizer.server import serve_registry  # noqa: PLC0415 - --help and config need neither FastAPI nor SQLAlchemy

    serve_registry(settings.schematizer)
