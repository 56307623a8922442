"""Programs that read a change topic with a client of each language, and nothing of this project; tests run them.

Each prints the messages up to the topic's present end, one JSON object a line: `key`, `op`, `after`; a tombstone has
null for the last two.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.jars import class_path, install
from dev.local_stack.java.peer_jars import JAVA_CLIENT, SPARK_AVRO
from dev.local_stack.java.runtime import find_java
from tests.support.consumers import tool_chains

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.consumers.typed_topic import Rows, TypedTopic

SOURCES = Path(__file__).parent


def client_rows(command: list[str], topic: TypedTopic) -> Rows:
    """The rows that a topic's messages leave, as the client prints them."""
    found: Rows = {}
    for line in tool_chains.run([*command, topic.kafka, topic.registry, topic.name]).splitlines():
        change = json.loads(line)
        key = json.dumps(change["key"])
        found.pop(key, None)
        if change["after"] is not None:
            found[key] = change["after"]
    return found


def python(_folder: Path) -> list[str]:
    """In Python's isolated mode: the project cannot be imported."""
    return [sys.executable, "-I", str(SOURCES / "python" / "read_topic.py")]


def duckdb(_folder: Path) -> list[str]:
    packages = tool_chains.packages("duckdb", tool_chains.DUCKDB)
    program = SOURCES / "python" / "read_in_duckdb.py"
    return ["env", f"PYTHONPATH={packages}", sys.executable, str(program)]


def spark(_folder: Path) -> list[str]:
    jars = ",".join(str(jar) for jar in sorted(install(SPARK_AVRO).glob("*.jar")))
    java_home = find_java(17).executable.parent.parent
    program = SOURCES / "python" / "read_in_spark.py"
    arguments = f"--jars {jars} pyspark-shell"
    return ["env", f"JAVA_HOME={java_home}", f"PYSPARK_SUBMIT_ARGS={arguments}", sys.executable, str(program)]


def clickhouse(_folder: Path) -> list[str]:
    packages = tool_chains.packages("clickhouse", tool_chains.CLICKHOUSE)
    return ["env", f"PYTHONPATH={packages}", sys.executable, str(SOURCES / "python" / "read_in_clickhouse.py")]


def java(folder: Path) -> list[str]:
    jars = install(JAVA_CLIENT)
    source = SOURCES / "java" / "ReadTopic.java"
    compile_java([source], folder / "classes", level=17, libraries=sorted(jars.glob("*.jar")))
    return [str(find_java(17).executable), "-cp", class_path(JAVA_CLIENT, folder / "classes"), "ReadTopic"]


def go(folder: Path) -> list[str]:
    shutil.copytree(SOURCES / "go", folder / "go")
    program = folder / "read-topic"
    tool_chains.run([str(tool_chains.go()), "build", "-o", str(program), "."], folder / "go", GOFLAGS="-mod=readonly")
    return [str(program)]


def javascript(folder: Path) -> list[str]:
    """No package's own script is run: none of these needs one."""
    shutil.copytree(SOURCES / "javascript", folder / "javascript")
    programs = tool_chains.node_folder()
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    command = [str(programs / "npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    tool_chains.run(command, folder / "javascript", PATH=path)
    return [str(programs / "node"), str(folder / "javascript" / "read_topic.js")]


CLIENTS: dict[str, Callable[[Path], list[str]]] = {
    "Python": python,
    "DuckDB": duckdb,
    "Spark": spark,
    "Java": java,
    "Go": go,
    "JavaScript": javascript,
}
"""By language or program: makes the command in a folder of the test's own."""
