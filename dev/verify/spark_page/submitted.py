"""The job that spark-submit runs, with a listener that appends each progress of its query to the file
SPARK_PAGE_PROGRESS, as JSON.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from materializer.cli import main

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

FILE = Path(os.environ["SPARK_PAGE_PROGRESS"])


class Listener(StreamingQueryListener):
    """An operator's own, in the session that the job then finds and uses."""

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        with FILE.open("a") as file:
            file.write("".join(event.progress.json.split("\n")) + "\n")


if __name__ == "__main__":
    SparkSession.builder.getOrCreate().streams.addListener(Listener())
    main()
