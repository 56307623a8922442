"""The images that others build on or run beside: the official ones where they can be pulled, otherwise stand-ins.

A stand-in has the official image's name on this engine alone, so that Dockerfile, compose.yaml and testcontainers are
used word for word. It is made of Debian's packages and of the jars in `.local/jars`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.java.jars import KAFKA, KAFKA_TOOLS, install
from dev.local_stack.process.paths import run_folder
from dev.local_stack.servers.cassandra_versions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dev.verify.containers.engine import Engine

PYTHON = "python:3.11-slim-bookworm"
CASSANDRA = f"cassandra:{VERSIONS['5.0'].release}"
KAFKA_IMAGE = f"apache/kafka:{KAFKA.name.partition('-')[2]}"
SPARK = f"apache/spark:{version('pyspark')}"
STAND_IN = "org.cassandra-cdc.stand-in"  # a label of images that only have an official one's name
_STAND_INS = Path(__file__).parent / "stand_ins"
_CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")
_PACKAGES = "python3,python3-dev,python3-pip,python3-venv,ca-certificates"
_CHANGES = (
    "ENV PIP_BREAK_SYSTEM_PACKAGES=1",
    f"ENV PIP_CERT={_CERTIFICATES} SSL_CERT_FILE={_CERTIFICATES}",
    f"LABEL {STAND_IN}=true",
    'CMD ["python3"]',
)

Report = Callable[[str], None]


def ensure_python(engine: Engine, report: Report = print) -> None:
    """Have python:3.11-slim-bookworm on the engine. CdcError STACK_MISSING."""
    if engine.has_image(PYTHON):
        return
    report(f"{PYTHON} cannot be pulled: making a stand-in of Debian's packages")
    if shutil.which("mmdebstrap") is None:
        raise CdcError(
            Code.STACK_MISSING, f"{PYTHON} cannot be pulled.", "Install mmdebstrap: a stand-in is made by it."
        )
    with _folder() as folder:
        archive = Path(folder) / "python.tar"
        _bootstrap(archive)
        changes = [argument for change in _CHANGES for argument in ("--change", change)]
        engine.docker("import", *changes, str(archive), PYTHON)


def ensure_cassandra(engine: Engine, report: Report = print) -> None:
    """Have cassandra:5.0's newest release that is known here on the engine. CdcError STACK_MISSING."""
    if engine.has_image(CASSANDRA):
        return
    release = VERSIONS["5.0"]
    jars = sorted(install(release.jars, report).glob("*.jar"))
    options = "\n".join(release.module_options()) + "\n"
    _build(engine, CASSANDRA, "lib", jars, {"jvm.options": options}, report)


def ensure_kafka(engine: Engine, report: Report = print) -> None:
    """Have apache/kafka on the engine. CdcError STACK_MISSING."""
    if engine.has_image(KAFKA_IMAGE):
        return
    jars = {jar.name: jar for jars in (KAFKA_TOOLS, KAFKA) for jar in install(jars, report).glob("*.jar")}
    _build(engine, KAFKA_IMAGE, "libs", jars.values(), {}, report)


def ensure_spark(engine: Engine, report: Report = print) -> None:
    """Have apache/spark on the engine; a stand-in has an entry point for drivers alone. CdcError STACK_MISSING."""
    if not engine.has_image(SPARK):
        _build(engine, SPARK, "jars", (), {}, report)


def _bootstrap(archive: Path) -> None:
    hooks = [
        '--customize-hook=ln -s python3 "$1/usr/bin/python"',
        # Debian's Python.h names a file of the processor, which a compiler for another one lacks. The file suits both.
        '--customize-hook=cd "$1/usr/include/python3.11" && ln -s ../*-linux-gnu x86_64-linux-gnu',
        '--customize-hook=cd "$1/usr/include/python3.11" && ln -s ../*-linux-gnu aarch64-linux-gnu',
        f'--customize-hook=cp {_CERTIFICATES} "$1{_CERTIFICATES}"',
    ]
    command = ["mmdebstrap", "--variant=minbase", f"--include={_PACKAGES}", *hooks, "bookworm", str(archive)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except subprocess.CalledProcessError as error:
        raise CdcError(
            Code.STACK_MISSING, f"mmdebstrap failed: {error.stderr[-1000:]}", "Run: apt-get update"
        ) from error


def _build(
    engine: Engine, image: str, jar_folder: str, jars: Iterable[Path], files: dict[str, str], report: Report
) -> None:
    """Build a stand-in, with jars, from the Dockerfile in the folder of its name."""
    ensure_python(engine, report)
    report(f"{image} cannot be pulled: making a stand-in")
    name = image.rpartition("/")[2].partition(":")[0]
    with _folder() as folder:
        context = Path(folder) / name
        shutil.copytree(_STAND_INS / name, context)
        (context / jar_folder).mkdir()
        for jar in jars:
            os.link(jar, context / jar_folder / jar.name)
        for file, text in files.items():
            (context / file).write_text(text)
        engine.docker("build", "-q", "--network", "host", "-t", image, str(context))


def _folder() -> tempfile.TemporaryDirectory[str]:
    """A folder on the file system of the jars, which are linked into it."""
    run_folder().mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(prefix="image-", dir=run_folder())
