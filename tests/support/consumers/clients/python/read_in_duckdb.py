"""Read the changes of a table into a file that DuckDB queries, and print them, one JSON object a line.

read_in_duckdb.py BOOTSTRAP REGISTRY_URL TOPIC. It needs duckdb, and PyPI's duckdb-ext-avro for read_avro.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
import fastavro
from read_topic import Topic, plain

EXTENSIONS = Path(duckdb.__file__).parents[1] / "duckdb_ext" / "extensions"
QUERY = (Path(__file__).parents[2] / "declarations" / "duckdb.sql").read_text()


def write_file(topic: Topic, file: Path) -> None:
    """Write all messages under the newest schemas: a column that an older message lacks is null."""
    found = [{"place": place, "key": key, "value": change} for place, (key, change) in enumerate(topic.changes())]
    newest: dict[str, Any] = {}
    for _, schema in sorted(topic.schemas.items()):
        newest["value" if schema["fields"][0]["name"] == "before" else "key"] = schema
    fields = [
        {"name": "place", "type": "long"},
        {"name": "key", "type": newest["key"]},
        {"name": "value", "type": ["null", newest["value"]]},
    ]
    with file.open("wb") as opened:
        fastavro.writer(opened, {"type": "record", "name": "message", "fields": fields}, found)


with tempfile.TemporaryDirectory() as folder:
    write_file(Topic(*sys.argv[1:]), Path(folder) / "changes.avro")
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    connection.load_extension(str(next(EXTENSIONS.rglob("avro.duckdb_extension"))))
    for key, op, after in connection.execute(QUERY.format(file=f"{folder}/changes.avro")).fetchall():
        print(json.dumps({"key": plain(key), "op": op, "after": plain(after)}))
