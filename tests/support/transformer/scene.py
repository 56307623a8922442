"""A source topic on a real broker with its schemas in a real registry, a transformers file, and the result."""

from __future__ import annotations

import copy
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from cdc_common.clients.registry.confluent import RegistryClient
from cdc_common.messages import wire
from cdc_common.settings import KafkaSettings, RegistrySettings
from tests.support.materializer.protocol_run import read_topic
from tests.support.transformer.orders import ENVELOPE, KEY, ORDER, decode, encode, envelope
from transformer.settings import Settings, TransformerSettings

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PARTITIONS = 2
KEYS = 11
STEPS = """
[[transformer.step]]
kind = "mask"
columns = ["email"]
how = "redact"
[[transformer.step]]
kind = "enum"
column = "status"
names = { 0 = "new", 1 = "paid" }
[[transformer.step]]
kind = "flags"
column = "bits"
bits = { is_gift = 0, is_late = 1 }
"""
SECOND_STEPS = """
[[transformer.step]]
kind = "mask"
columns = ["total"]
how = "drop"
"""
BAD_STATUS = 9


Keyed: TypeAlias = "tuple[int, dict[str, Any] | None]"  # a key, and its row; None for a tombstone


class Scene(NamedTuple):
    """The transformer `first` reads the source, and `second` what `first` writes, if the file has it."""

    bootstrap: str
    registry: str
    prefix: str
    folder: Path

    @property
    def topic(self) -> str:
        return f"{self.prefix}.shop.orders"

    @property
    def targets(self) -> tuple[str, str]:
        return f"{self.prefix}-1.shop.orders", f"{self.prefix}-2.shop.orders"

    @property
    def file(self) -> Path:
        return self.folder / "transformers.toml"

    def write_file(self, steps: str = STEPS, second: str = "") -> None:
        chain = [("first", self.prefix, f"{self.prefix}-1", steps)]
        if second:
            chain.append(("second", f"{self.prefix}-1", f"{self.prefix}-2", second))
        self.file.write_text("".join(_table(*definition) for definition in chain))

    def settings(self, **transformer: Any) -> Settings:  # noqa: ANN401 - settings
        own = {"group_id": self.prefix, "chunk_max_messages": 25, **transformer}
        return Settings(
            kafka=KafkaSettings(bootstrap_servers=self.bootstrap, topic_prefix=self.prefix),
            registry=RegistrySettings(url=self.registry),
            transformer=TransformerSettings(**own),
        )

    def make_source(self, schema: Any = ENVELOPE) -> None:  # noqa: ANN401 - JSON
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        for future in admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)]).values():
            future.result()
        self.register(schema)

    def recreate_source(self) -> None:
        """Delete its topic, and create another one of the same name as soon as the brokers allow it."""
        admin = AdminClient({"bootstrap.servers": self.bootstrap})
        admin.delete_topics([self.topic])[self.topic].result()
        while True:
            try:
                admin.create_topics([NewTopic(self.topic, PARTITIONS, 1)])[self.topic].result()
            except KafkaException as error:
                if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                    raise
            else:
                return

    def register(self, schema: Any = ENVELOPE, topic: str = "") -> tuple[int, int]:  # noqa: ANN401 - JSON
        """The ids of the schemas of key and value, now of this topic."""
        topic = topic or self.topic
        with RegistryClient(RegistrySettings(url=self.registry)) as registry:
            key, value = _renamed(KEY, self.topic), _renamed(schema, self.topic)
            return registry.register(f"{topic}-key", key), registry.register(f"{topic}-value", value)

    def send(
        self,
        numbers: Iterable[int],
        *,
        status: int = 1,
        schema: Any = ENVELOPE,  # noqa: ANN401 - JSON
        topic: str = "",
        names: Mapping[str, str] | None = None,
    ) -> None:
        """Send messages in one transaction. Message `number` has the key `number % KEYS`, which gives its partition;
        every fifth is a tombstone. names: new names of columns.
        """
        key_id, value_id = self.register(schema, topic)
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": f"{self.prefix}-source"})
        producer.init_transactions()
        producer.begin_transaction()
        for number in numbers:
            key = number % KEYS
            row = {**ORDER, "id": key, "total": float(number), "status": status, "bits": number % 4}
            row = {(names or {}).get(name, name): value for name, value in row.items()}
            value = None if number % 5 == 4 else wire.header(value_id) + encode(schema, envelope(None, row, "c"))
            where = topic or self.topic
            producer.produce(where, value, wire.header(key_id) + encode(KEY, {"id": key}), key % PARTITIONS)
        producer.commit_transaction()

    def expected(self, numbers: Iterable[int], *, is_second: bool = False) -> dict[int, list[Keyed]]:
        """Return the messages that each partition must give, without a look at the code: rows; None for tombstones."""
        found: dict[int, list[Keyed]] = defaultdict(list)
        for number in numbers:
            key = number % KEYS
            row: dict[str, Any] = {**ORDER, "id": key, "email": "***", "status": "paid", "total": float(number)}
            del row["bits"]
            row |= {"is_gift": bool(number & 1), "is_late": bool(number & 2)}
            if is_second:
                del row["total"]
            found[key % PARTITIONS].append((key, None if number % 5 == 4 else row))
        return dict(found)

    def received(self, topic: str) -> dict[int, list[Keyed]]:
        """The committed messages of each partition: keys and rows."""
        found: dict[int, list[Keyed]] = defaultdict(list)
        schemas: dict[int, Any] = {}
        with RegistryClient(RegistrySettings(url=self.registry)) as registry:

            def decoded(data: bytes) -> Any:  # noqa: ANN401 - what a schema says
                number = wire.schema_id(data)
                schema = schemas.get(number) or schemas.setdefault(number, registry.get(number))
                return decode(schema, data[wire.HEADER_SIZE :])

            for message in read_topic(self.bootstrap, topic, PARTITIONS):
                key, value = message.key(), message.value()
                assert key is not None
                row = None if value is None else decoded(value)["after"]
                found[message.partition() or 0].append((decoded(key)["id"], row))
        return dict(found)


def _table(name: str, source: str, target: str, steps: str) -> str:
    return (
        f'[[transformer]]\nname = "{name}"\nsource = {{ namespace = "{source}.shop", source = "orders" }}\n'
        f'target = {{ namespace = "{target}.shop", source = "orders" }}\n{steps}\n'
    )


def _renamed(schema: Any, namespace: str) -> Any:  # noqa: ANN401 - JSON
    made = copy.deepcopy(schema)
    made["namespace"] = namespace.replace("-", "_")
    return made
