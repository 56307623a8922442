"""Java's Avro in one long-lived JVM; `java/AvroJudge.java` tells the requests. Its jars are those of PySpark."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, Self

from dev.local_stack.java.compiler import compile_java
from dev.local_stack.java.runtime import find_java
from dev.local_stack.servers.spark_cluster import spark_home

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCE = Path(__file__).parent / "java" / "AvroJudge.java"
JARS = ("avro-1", "jackson-core-2", "jackson-databind-2", "jackson-annotations-2", "slf4j-api", "commons-compress")
JAVA = 17
_LIMIT = 1_000_000  # bytes of a value: a damaged length may be any
_OPTIONS = (
    "-Xmx512m",
    f"-Dorg.apache.avro.limits.bytes.maxLength={_LIMIT}",
    f"-Dorg.apache.avro.limits.string.maxLength={_LIMIT}",
)
_INT = struct.Struct(">i")


class Judged(NamedTuple):
    """A message that Java takes."""

    # The offset after each field of the record, in bytes.
    ends: tuple[int, ...]
    # The message as Java writes it.
    whole: bytes
    # The chosen fields as Java reads and writes them.
    chosen: bytes


class JavaJudge:
    """A context manager."""

    def __enter__(self) -> Self:
        self._folder = tempfile.TemporaryDirectory(prefix="avro-judge-")
        folder = Path(self._folder.name)
        jars = [jar for name in JARS for jar in (spark_home() / "jars").glob(f"{name}*.jar")]
        compile_java([SOURCE], folder, level=JAVA, libraries=jars)
        command = [str(find_java(JAVA).executable), *_OPTIONS, "-cp", os.pathsep.join(map(str, [folder, *jars]))]
        self._child = subprocess.Popen([*command, SOURCE.stem], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(self, *_: object) -> None:
        self._child.communicate()
        self._folder.cleanup()

    def judge(
        self,
        schema: Any,  # noqa: ANN401 - JSON
        names: Sequence[str],
        messages: Sequence[bytes],
    ) -> list[Judged | None]:
        """Judge messages of a record's schema; None for one that Java refuses. names: of the chosen fields."""
        request: list[bytes | int] = [json.dumps(schema).encode(), len(names), *(name.encode() for name in names)]
        request += [len(messages), *messages]
        to, answers = self._child.stdin, self._child.stdout
        assert to is not None
        assert answers is not None
        to.write(b"".join(_packed(part) for part in request))
        to.flush()
        return list(_answers(answers, len(schema["fields"]), len(messages)))


def _packed(part: bytes | int) -> bytes:
    return _INT.pack(part) if isinstance(part, int) else _INT.pack(len(part)) + part


def _answers(answers: IO[bytes], fields: int, messages: int) -> Iterator[Judged | None]:
    for _ in range(messages):
        if not _number(answers):
            yield None
            continue
        ends = tuple(_number(answers) for _ in range(fields))
        yield Judged(ends, answers.read(_number(answers)), answers.read(_number(answers)))


def _number(answers: IO[bytes]) -> int:
    found = answers.read(_INT.size)
    assert len(found) == _INT.size, "the JVM has died"
    return int(_INT.unpack(found)[0])
