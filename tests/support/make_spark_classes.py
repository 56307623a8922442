"""Makes the archive of spark_classes, once for each Java and Spark: `python -m tests.support.make_spark_classes`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

from dev.local_stack.java.runtime import find_java
from dev.local_stack.process.locks import locked
from dev.local_stack.servers.programs import SPARK_JAVA, spark_environment
from dev.local_stack.servers.spark_classes import ARCHIVE, FOLDER, OPTIONS, QUIET
from materializer.settings import MaterializerSettings
from stream_runtime.query.spark_session import open_session
from tests.support.materializer.streaming_job import Job

SECONDS = 600  # 15 on an idle machine


def make() -> None:
    """Make the archive unless there is one of this Java and this Spark."""
    java = find_java(SPARK_JAVA)
    identity = f"{java.home} {java.version} pyspark {version('pyspark')}\n"
    with locked(FOLDER):
        FOLDER.mkdir(exist_ok=True)
        made_of = FOLDER / "spark.txt"
        if made_of.exists() and made_of.read_text() == identity:
            return
        with tempfile.TemporaryDirectory(dir=FOLDER) as fresh:
            archive = Path(fresh) / ARCHIVE
            options = f"-XX:ArchiveClassesAtExit={archive} {QUIET}"
            environment = {**os.environ, **spark_environment(Path(fresh)), OPTIONS: options}
            command = [sys.executable, "-m", __spec__.name, "run", fresh]
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
            )
            if done.returncode or not archive.exists():
                sys.stderr.write(f"Spark's drivers start slower, without an archive of classes:\n{done.stderr}\n")
                return
            archive.rename(FOLDER / ARCHIVE)
        made_of.write_text(identity)


def run(in_folder: Path) -> None:
    """Load the classes: a session with a streaming query."""
    with open_session(MaterializerSettings(spark_master="local[2,4]")) as opened:
        job = Job(opened.session, in_folder)
        job.run_until_all()
        job.workers.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"]:
        run(Path(sys.argv[2]))
    else:
        make()
