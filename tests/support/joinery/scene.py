"""Orders and users on a broker, with their schemas in a registry, a joins file, and what comes out of it."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import duckdb
import fastavro
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.messages import wire
from cdc_common.messages.topics import partition_for
from cdc_common.settings import KafkaSettings, RegistrySettings
from joinery.definition_file import load_joins
from joinery.planning.joined_schema import key_schema, value_schema
from joinery.planning.plan import plan_join
from joinery.settings import JoinerySettings, Settings
from tests.support.joinery import tables
from tests.support.joinery.tables import decode, encode, envelope, schema_of
from tests.support.materializer.protocol_run import read_topic

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from random import Random

    from joinery.planning.plan import JoinPlan

SOURCE_PARTITIONS = 2
TARGET_PARTITIONS = 3
FILTER = "total < 3"
"""Of the orders. A random order passes in three of four cases."""
KEYS = {"orders": {"id": "int"}, "users": {"id": "long"}}


class Registry(Protocol):
    """tests.support.schematizer.registry_process.Registry."""

    url: str

    def call(self, method: str, path: str, body: object = None, /) -> Any: ...  # noqa: ANN401 - an answer


class Row(NamedTuple):
    """A row that is to be written; without its other columns, it is deleted."""

    # The table.
    table: str
    # Its columns.
    columns: dict[str, Any]
    # Whether it is deleted.
    is_delete: bool = False


class Scene:
    """The left join of some orders with their users. Changes go to topics as the materializer sends them."""

    def __init__(self, bootstrap: str, registry: Registry, prefix: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.folder = folder
        self.file = folder / "joins.toml"
        self.rows: dict[str, dict[int, dict[str, Any]]] = {"orders": {}, "users": {}}
        self._registry = registry
        self._sequences: dict[tuple[str, int], int] = {}
        self._ids = {table: self._register(table) for table in KEYS}
        self.where = FILTER
        self.selected = ["o.id as order_id", "o.total", "u.name as user_name"]
        self._schemas: dict[int, Any] = {}
        self.write_file()

    def write_file(self, most_rows: int = 1_000_000) -> None:
        self.file.write_text(
            f"""[[join]]
name = "orders"
target = {{ namespace = "{self.prefix}.joined", source = "orders" }}
on = ["o.user_id = u.id"]
select = {json.dumps(self.selected)}
most_rows = {most_rows}
input.o = {{ namespace = "{self.prefix}.shop", source = "orders", where = ["{self.where}"] }}
input.u = {{ namespace = "{self.prefix}.shop", source = "users", optional = true }}
"""
        )

    @property
    def target(self) -> str:
        return f"{self.prefix}.joined.orders"

    def topic(self, table: str) -> str:
        return f"{self.prefix}.shop.{table}"

    def settings(self, **joinery: Any) -> Settings:  # noqa: ANN401 - settings
        own = {
            "group_id": self.prefix,
            "chunk_max_messages": 20,
            "checkpoint_location": str(self.folder / "checkpoint"),
            "state_directory": self.folder / "states",
            **joinery,
        }
        return Settings(
            kafka=KafkaSettings(bootstrap_servers=self.bootstrap, change_partitions=TARGET_PARTITIONS),
            registry=RegistrySettings(url=self._registry.url),
            joinery=JoinerySettings(**own),
        )

    def make_sources(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(self.topic(name), SOURCE_PARTITIONS, 1) for name in KEYS]).values():
            future.result()

    def send(self, rows: Iterable[Row]) -> None:
        """Send the changes of rows, in order; a tombstone after each deletion."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for table, columns, is_delete in rows:
            row_id = columns["id"]
            before, after = self.rows[table].pop(row_id, None), None if is_delete else columns
            if after is not None:
                self.rows[table][row_id] = after
            if before is None and after is None:
                continue
            sequence = self._sequences[table, row_id] = self._sequences.get((table, row_id), 0) + 1
            key_id, value_id = self._ids[table]
            key = wire.header(key_id) + encode(tables.key_schema(table, KEYS[table]), {"id": row_id})
            schema = tables.value_schema(table, tables.TABLES[table][0])
            value = wire.header(value_id) + encode(schema, envelope(before, after, sequence))
            partition = partition_for(key, SOURCE_PARTITIONS)
            producer.produce(self.topic(table), value, key, partition)
            if after is None:
                producer.produce(self.topic(table), None, key, partition)
        assert producer.flush(30) == 0

    def joined(self) -> list[tuple[Any, ...]]:
        """The joined rows that the target has. The chain of each is checked."""
        plan = self.plan
        keys = key_schema(plan)
        found: dict[bytes, Any] = {}
        if self.target not in AdminClient({"bootstrap.servers": self.bootstrap}).list_topics(timeout=30).topics:
            return []
        sequences: dict[bytes, int] = {}
        for message in read_topic(self.bootstrap, self.target, TARGET_PARTITIONS):
            key, value = message.key(), message.value()
            assert isinstance(key, bytes)
            if value is None:
                assert key not in found
                continue
            assert isinstance(value, bytes)
            decode(keys, key[wire.HEADER_SIZE :])
            change = self.change(value)
            assert found.pop(key, None) == change["before"], (key, change)
            assert sequences.get(key, -1) < change["source"]["row_sequence"]
            sequences[key] = change["source"]["row_sequence"]
            if change["after"] is not None:
                found[key] = change["after"]
        names = [field["name"] for field in plan.row_fields]
        return sorted((tuple(row[name] for name in names) for row in found.values()), key=repr)

    def by_sql(self) -> list[tuple[Any, ...]]:
        """The join of the tables as they are."""
        with duckdb.connect() as database:
            database.execute("CREATE TABLE o (id INT, user_id INT, total DOUBLE, note VARCHAR)")
            database.execute("CREATE TABLE u (id BIGINT, name VARCHAR)")
            for row in self.rows["orders"].values():
                values = [row["id"], row["user_id"], row["total"], row["note"]]
                database.execute("INSERT INTO o VALUES (?, ?, ?, ?)", values)
            for row in self.rows["users"].values():
                database.execute("INSERT INTO u VALUES (?, ?)", [row["id"], row["name"]])
            selected = ", ".join(("coalesce(o.user_id, u.id)", *self.selected))
            joined = f"o LEFT JOIN u ON o.user_id = u.id WHERE o.{self.where}"
            found = database.execute(f"SELECT {selected} FROM {joined}").fetchall()
        return sorted(found, key=repr)

    def change(self, value: bytes) -> Any:  # noqa: ANN401 - an envelope
        """A change of the target under the newest schema."""
        written = self._schema(wire.schema_id(value))
        stream = io.BytesIO(value[wire.HEADER_SIZE :])
        found = fastavro.schemaless_reader(stream, written, fastavro.parse_schema(value_schema(self.plan)))
        assert not stream.read()
        return found

    def _schema(self, schema_id: int) -> Any:  # noqa: ANN401 - a schema
        if schema_id not in self._schemas:
            text = self._registry.call("GET", f"/schemas/ids/{schema_id}").body["schema"]
            self._schemas[schema_id] = fastavro.parse_schema(json.loads(text))
        return self._schemas[schema_id]

    @property
    def plan(self) -> JoinPlan:
        (join,) = load_joins(self.file)
        return plan_join(join, {"o": schema_of("orders"), "u": schema_of("users")})

    def _register(self, table: str) -> tuple[int, int]:
        body = {
            "format": "avro",
            "text": json.dumps(tables.value_schema(table, tables.TABLES[table][0])),
            "key": json.dumps(tables.key_schema(table, KEYS[table])),
            "source": table,
        }
        made = self._registry.call("POST", f"/api/v1/namespaces/{self.prefix}.shop/schemas", body)
        assert made.status == 200, made.body
        assert made.body["topic"] == self.topic(table)
        return made.body["key_schema_id"], made.body["schema_id"]


def random_rows(random: Random, count: int) -> list[Row]:
    """Random writes: key moves, null keys, deletions, and rows that come again."""
    made = []
    for _ in range(count):
        is_delete = random.random() < 0.2
        if random.random() < 0.7:
            user = random.choice([None, *range(5)])
            order = {"id": random.randrange(12), "user_id": user, "total": float(random.randrange(4)), "note": None}
            made.append(Row("orders", order, is_delete))
        else:
            user_row = {"id": random.randrange(5), "name": random.choice([None, "Ada", "Bob"]), "city": None}
            made.append(Row("users", user_row, is_delete))
    return made
