"""The transformer's peer in Flink SQL: the same five steps by its Kafka connector and its format `avro-confluent`.

`python -m dev.bench.flink_job BOOTSTRAP REGISTRY SOURCE TARGET FOLDER`: transforms until the process is killed. Keys
are taken over as they are, and delivery is at least once.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from dev.local_stack.java.jars import class_path
from dev.local_stack.java.peer_jars import FLINK
from tests.support.cdc_native.envelopes import ENVELOPE
from tests.support.consumers.flink_sql import OPENED, compile_run, quoted
from tests.support.consumers.sql_types import FLINK_TYPES
from tests.support.schematizer.java_gateway import java_gateway

PARALLELISM = "2"
CLIENT = ("-Xmx1g", "-XX:TieredStopAtLevel=4")
_ROW = {
    "id": "BIGINT",
    "email": "STRING",
    "city": "STRING",
    "status": "STRING",
    "gift": "BOOLEAN",
    "express": "BOOLEAN",
}
_TARGET_ROW = {**_ROW, "total": "DOUBLE", "at": "TIMESTAMP(3)"}


def main(bootstrap: str, registry: str, source: str, target: str, folder: str) -> None:
    classes = compile_run(Path(folder, "classes"))
    gateway = java_gateway(class_path(FLINK, classes), *CLIENT, *OPENED)
    run = gateway.jvm.FlinkRun()
    run.set("table.exec.resource.default-parallelism", PARALLELISM)
    run.set("execution.checkpointing.interval", "1 s")
    before, _, *rest = ENVELOPE["fields"]  # `after` is a Value, too
    image = FLINK_TYPES.of(before["type"])
    fields = {"before": image, "after": image, **{field["name"]: FLINK_TYPES.of(field["type"]) for field in rest}}
    row = "ROW<" + ", ".join(f"{quoted(name)} {kind}" for name, kind in _TARGET_ROW.items()) + ">"
    run.execute(_table("source_topic", fields, source, bootstrap, registry))
    run.execute(_table("target_topic", {**fields, "before": row, "after": row}, target, bootstrap, registry))
    names = [quoted(name) for name in fields if name not in ("before", "after")]
    selected = ["message_key", _image("before"), _image("after"), *names]
    run.execute(f"INSERT INTO target_topic SELECT {', '.join(selected)} FROM source_topic")  # noqa: S608 - of this file
    print("ready", flush=True)  # noqa: T201 - what the benchmark waits for
    while True:
        time.sleep(1)


def _table(table: str, fields: dict[str, str], topic: str, bootstrap: str, registry: str) -> str:
    columns = ", ".join(f"{quoted(name)} {kind}" for name, kind in fields.items())
    options: dict[str, Any] = {
        "connector": "kafka",
        "topic": topic,
        "properties.bootstrap.servers": bootstrap,
        "scan.startup.mode": "earliest-offset",
        "key.format": "raw",
        "key.fields": "message_key",
        "value.fields-include": "EXCEPT_KEY",
        "value.format": "avro-confluent",
        "value.avro-confluent.url": registry,
        "value.avro-confluent.subject": f"{topic}-value",
    }
    given = ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
    return f"CREATE TABLE {table} (message_key BYTES, {columns}) WITH ({given})"


def _image(name: str) -> str:
    """A row after the steps of dev.bench.transformer, null if it is null."""
    status = f"`{name}`.`status`"
    names = f"CASE {status} WHEN 0 THEN 'new' WHEN 3 THEN 'paid' ELSE CAST({status} AS STRING) END"
    made = [
        f"`{name}`.`id`",
        f"CASE WHEN `{name}`.`email` IS NOT NULL THEN '***' END",
        "CAST(NULL AS STRING)",
        f"CASE WHEN {status} IS NOT NULL THEN {names} END",
        f"MOD(`{name}`.`bits`, 2) <> 0",
        f"MOD(`{name}`.`bits` / 4, 2) <> 0",
        f"`{name}`.`total`",
        f"`{name}`.`at`",
    ]
    row = ", ".join(f"CAST({value} AS {kind})" for value, kind in zip(made, _TARGET_ROW.values(), strict=True))
    return f"CASE WHEN `{name}` IS NOT NULL THEN ROW({row}) END"


if __name__ == "__main__":
    main(*sys.argv[1:])
