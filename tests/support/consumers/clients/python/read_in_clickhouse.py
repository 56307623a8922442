"""Read the changes of a table into a file that ClickHouse queries, and print them, one JSON object a line.

read_in_clickhouse.py BOOTSTRAP REGISTRY_URL TOPIC. It needs chdb, confluent-kafka and fastavro. An array of ClickHouse
has no null: a column without a value is an empty one. Dates and timestamps stay numbers, as in read_topic.py.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import chdb
import fastavro
from read_topic import Topic, plain

QUERY = (Path(__file__).parents[2] / "declarations" / "clickhouse.sql").read_text()
PLACE = "message_place"


def rows_of(changes: list[tuple[Any, Any]], schemas: dict[int, Any], folder: str) -> dict[int, dict[str, Any]]:
    """The rows of changes by their places. All are written under the newest schema."""
    newest = [schema for _, schema in sorted(schemas.items()) if schema["fields"][0]["name"] == "before"][-1]
    row = newest["fields"][0]["type"][1]
    fields = [{"name": PLACE, "type": "long"}, *row["fields"]]
    file = Path(folder) / "rows.avro"
    found = [{PLACE: at, **change["after"]} for at, (_, change) in enumerate(changes) if change and change["after"]]
    with file.open("wb") as opened:
        fastavro.writer(opened, {"type": "record", "name": "row", "fields": fields}, found)
    blobs = {field["name"] for field in fields if "bytes" in (field["type"], *field["type"])}
    names = [field["name"] for field in fields]
    columns = ", ".join(f"concat('0x', lower(hex({name}))) AS {name}" if name in blobs else name for name in names)
    shown = str(chdb.query(QUERY.format(columns=columns, file=file), "JSONEachRow"))
    return {int(found[PLACE]): found for found in map(json.loads, shown.splitlines())}


if __name__ == "__main__":
    topic = Topic(*sys.argv[1:])
    messages = list(topic.changes())
    with tempfile.TemporaryDirectory() as made:
        rows = rows_of(messages, topic.schemas, made)
    for place, (key, change) in enumerate(messages):
        after = rows.get(place)
        if after is not None:
            del after[PLACE]
        print(json.dumps({"key": plain(key), "op": change and change["op"], "after": after}))
