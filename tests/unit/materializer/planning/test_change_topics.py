"""Which change topic a schema gets, depending on the registry."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import UUID

from cassandra_storage.formats.schema.tables import ColumnKind, ColumnMetadata
from cassandra_storage.formats.types.marshal import NativeType, UserType
from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.tables import message_key, to_json
from materializer.planning.change_topics import ChangeTopics
from materializer.planning.known_subjects import KnownSubjects
from materializer.planning.plan import TableSchema
from tests.support.materializer.memory_registry import MemoryRegistry
from tests.support.materializer.raw_builder import INT, TABLE, column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cassandra_storage.formats.schema.tables import TableMetadata

TOPIC = "cdc.shop.orders"
RENAMED = replace(TABLE, clustering=(replace(TABLE.clustering[0], name="d"),))
WIDER = replace(TABLE, regular_columns=(*TABLE.regular_columns, column("z", INT, ColumnKind.REGULAR)))


def topics(registry: MemoryRegistry, *tables: TableMetadata) -> list[str | None]:
    """The change topic of each schema, as a driver finds it that has just started."""
    schemas = [TableSchema(*split(message_key(table)), to_json(table)) for table in tables]
    found = ChangeTopics("cdc", registry, lambda _topic: 3).find_or_create(schemas, EXACT)
    return [None if topic is None else topic.name for topic in found]


def split(key: bytes) -> tuple[bytes, bytes]:
    return key[:16], key[16:]


def test_a_new_column_stays_in_the_topic_and_a_backlogs_schemas_are_registered_in_order() -> None:
    registry = MemoryRegistry()
    assert topics(registry, TABLE, WIDER, RENAMED) == [TOPIC, TOPIC, f"{TOPIC}-v2"]
    assert registry.subjects == [
        f"{TOPIC}-value",
        f"{TOPIC}-key",
        f"{TOPIC}-value",
        f"{TOPIC}-v2-value",
        f"{TOPIC}-v2-key",
    ]


def test_a_schema_before_a_registered_one_is_not_registered() -> None:
    """An earlier release did not register it: registering never goes back."""
    registry = MemoryRegistry()
    assert topics(registry, WIDER) == [TOPIC]
    assert topics(registry, TABLE, WIDER) == [None, TOPIC]


def test_a_schema_that_comes_back_does_not_hide_those_before_it() -> None:
    """A column is dropped and added again before the driver looks: the registry knows the last schema as the first."""
    registry = MemoryRegistry()
    narrower = replace(TABLE, regular_columns=TABLE.regular_columns[:-1])
    tables = [replace(table, altered_at=at) for at, table in enumerate((TABLE, narrower, TABLE, RENAMED, TABLE), 1)]
    assert topics(registry, tables[0]) == [TOPIC]
    assert topics(registry, *tables[:3]) == [TOPIC, TOPIC, TOPIC]
    assert topics(registry, *tables) == [TOPIC, TOPIC, TOPIC, f"{TOPIC}-v2", TOPIC]


def test_a_schema_that_was_never_the_newest_is_not_registered() -> None:
    registry = MemoryRegistry()
    newest = replace(WIDER, altered_at=5)
    assert topics(registry, TABLE, replace(WIDER, regular_columns=TABLE.regular_columns[:2], altered_at=3), newest) == [
        None,
        TOPIC,
        TOPIC,
    ]


def test_what_was_registered_once_is_found_again() -> None:
    registry = MemoryRegistry()
    assert topics(registry, TABLE) == [TOPIC]
    assert topics(registry, TABLE, WIDER) == [TOPIC, TOPIC]
    assert topics(registry, TABLE, WIDER, TABLE) == [TOPIC, TOPIC, TOPIC]
    assert registry.subjects == [f"{TOPIC}-value", f"{TOPIC}-key", f"{TOPIC}-value"]


def test_another_key_starts_another_version_and_the_former_key_goes_back() -> None:
    registry = MemoryRegistry()
    assert topics(registry, TABLE) == [TOPIC]
    assert topics(registry, TABLE, RENAMED) == [TOPIC, f"{TOPIC}-v2"]
    assert topics(registry, RENAMED, TABLE) == [f"{TOPIC}-v2", TOPIC]
    third = replace(RENAMED, clustering=(replace(TABLE.clustering[0], name="e"),))
    assert topics(registry, RENAMED, TABLE, third) == [f"{TOPIC}-v2", TOPIC, f"{TOPIC}-v3"]


def test_an_incompatible_value_starts_another_version_which_is_kept() -> None:
    registry = MemoryRegistry(f"{TOPIC}-value")
    assert topics(registry, TABLE) == [TOPIC]
    assert topics(registry, TABLE, WIDER) == [TOPIC, f"{TOPIC}-v2"]
    wider = replace(WIDER, regular_columns=(*WIDER.regular_columns, column("zz", INT, ColumnKind.REGULAR)))
    assert topics(registry, TABLE, WIDER, wider) == [TOPIC, f"{TOPIC}-v2", f"{TOPIC}-v2"]


def test_the_newest_of_a_former_table_is_published_too() -> None:
    registry = MemoryRegistry()
    recreated = replace(WIDER, id=UUID(int=8))
    assert topics(registry, TABLE, recreated) == [TOPIC, TOPIC]


def test_fields_that_exchange_their_names_leave_the_topic() -> None:
    registry = MemoryRegistry()
    tables = [with_fields(*names) for names in (("a", "b"), ("x", "b"), ("x", "a"), ("b", "a"))]
    for count in range(1, 4):
        topics(registry, *tables[:count])
    assert topics(registry, *tables) == [TOPIC, TOPIC, f"{TOPIC}-v2", f"{TOPIC}-v2"]


def with_fields(*names: str) -> TableMetadata:
    user_type = UserType("shop", "pair", names, (NativeType("int"),) * len(names), is_multi_cell=False)
    return replace(TABLE, regular_columns=(ColumnMetadata("u", user_type, ColumnKind.REGULAR),))


class CountingRegistry(MemoryRegistry):
    """Counts the requests about subjects."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = self.listed = 0

    def has(self, subject: str) -> bool:
        self.asked += 1
        return super().has(subject)

    def list_subjects(self, prefix: str) -> set[str]:
        self.listed += 1
        return super().list_subjects(prefix)


def test_many_tables_are_looked_up_with_one_list_of_subjects() -> None:
    registry = CountingRegistry()
    tables = [replace(TABLE, name=f"t{number}", id=UUID(int=number)) for number in range(100)]
    for table in tables:
        topics(registry, table)
    registry.asked = registry.listed = 0
    assert find_each(registry, tables) == [f"cdc.shop.t{number}" for number in range(100)]
    assert registry.asked <= 20
    assert registry.listed == 1


def test_what_is_registered_after_the_list_is_found() -> None:
    registry = CountingRegistry()
    tables = [replace(TABLE, name=f"t{number}", id=UUID(int=number)) for number in range(100)]
    versions = [
        version for table in tables for version in (table, replace(RENAMED, name=table.name, id=table.id), table)
    ]
    names = [[f"cdc.shop.t{number}", f"cdc.shop.t{number}-v2", f"cdc.shop.t{number}"] for number in range(100)]
    assert find_each(registry, versions) == [name for of_table in names for name in of_table]
    assert registry.listed == 1


def test_a_list_is_used_for_a_short_time() -> None:
    registry = CountingRegistry()
    seconds = [100.0]
    subjects = KnownSubjects("cdc", registry, lambda: seconds[0])
    assert not any(subjects.has("cdc.shop.orders-key") for _ in range(100))
    assert (registry.asked, registry.listed) == (20, 1)
    registry.register("cdc.shop.orders-key", {})
    assert not subjects.has("cdc.shop.orders-key")
    seconds[0] += 30
    assert subjects.has("cdc.shop.orders-key")
    assert (registry.asked, registry.listed) == (21, 1)


def find_each(registry: MemoryRegistry, tables: Sequence[TableMetadata]) -> list[str | None]:
    """The change topic of each schema, by one driver, which gets to know the schemas of a table one after the other, in
    no time.
    """
    finder = ChangeTopics("cdc", registry, lambda _topic: 3, lambda: 100.0)
    known: dict[str, list[TableSchema]] = {}
    found = []
    for table in tables:
        schemas = known.setdefault(table.name, [])
        schemas.append(TableSchema(*split(message_key(table)), to_json(table)))
        newest = finder.find_or_create(schemas, EXACT)[-1]
        found.append(None if newest is None else newest.name)
    return found
