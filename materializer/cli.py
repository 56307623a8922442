"""The console script cassandra-materializer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_program.cli import Program

if TYPE_CHECKING:
    from cdc_program.settings import Settings

main = Program(
    "cassandra-materializer",
    tables=("kafka", "registry", "materializer", "log"),
    help="Makes the changes of rows out of raw messages: a Spark Structured Streaming job.",
)


@main.program_command(
    "run",
    flags={
        "--bootstrap-servers": "kafka.bootstrap_servers",
        "--topic-prefix": "kafka.topic_prefix",
        "--group-id": "materializer.group_id",
        "--checkpoint-location": "materializer.checkpoint_location",
        "--state-directory": "materializer.state_directory",
        "--spark-master": "materializer.spark_master",
    },
)
def run(settings: Settings) -> None:
    """Follows the raw topics and publishes each change of each row once, until it is stopped.

    Where it stands is the consumer group's committed offset; started again, it goes on there.
    """
    from materializer.spark import run as materialize  # noqa: PLC0415 - --help and config need no PySpark

    materialize(settings)
