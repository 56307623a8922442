"""The words of one job, as its operator knows them."""

from __future__ import annotations

from typing import NamedTuple


class Words(NamedTuple):
    """The words that the runtime uses in a job's errors, logs, status, metrics and in Spark's UI."""

    # The job's name, which is also its table of cdc.toml and a part of its metrics' names.
    job: str = "job"
    # A share.
    partition: str = "partition"
    # A source topic, or a stream of the job.
    topic: str = "source topic"
    # The verb for its work with messages.
    do: str = "process"
    # The verb's participle.
    done: str = "processed"

    @property
    def key(self) -> str:
        """A share as a field of log lines, of `/status` and in the names of metrics."""
        return self.partition.replace(" ", "_")

    @property
    def partitions(self) -> str:
        return f"{self.partition}s"

    @property
    def topics(self) -> str:
        return f"{self.topic}s"

    @property
    def metrics(self) -> str:
        """The prefix of the job's metrics."""
        return f"cdc_{self.job}"

    def setting(self, name: str) -> str:
        """A setting of the job, as an operator writes it."""
        return f"{self.job}.{name}"


NEUTRAL = Words()
