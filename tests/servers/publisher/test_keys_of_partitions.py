"""Partition keys that Cassandra tells apart by their bytes, and shows alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from cdc_common.messages.avro.type_forms import EXACT
from cdc_common.messages.changes import RowChange, Source
from cdc_common.messages.envelope import ChangeEncoder
from tests.support.publisher.sent import at_least, rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cassandra.cluster import Session

    from tests.support.publisher.publisher_process import PublisherProcess
    from tests.support.publisher.sent import Sent

pytestmark = [pytest.mark.servers, pytest.mark.timeout(300)]


# By table: the type of the key, literals of keys that are all different partitions, and how many have a message key.
TABLES: dict[str, tuple[str, Sequence[str], int]] = {
    "b": ("boolean", ["true", "blobAsBoolean(0x02)", "blobAsBoolean(0xff)", "false"], 2),
    "t": ("frozen<tuple<int, int>>", ["(1)", "(1, null)", "(1, 2)"], 2),
    "d": ("decimal", ["1.0", "1.00", "blobAsDecimal(0x00000001000a)"], 3),
    "n": ("varint", ["5", "blobAsVarint(0x0005)"], 2),
    "i": ("inet", ["'1.2.3.4'", "blobAsInet(0x00000000000000000000ffff01020304)"], 2),
}


def test_no_two_partitions_have_one_message_key(
    cql: Session, fresh_keyspace: str, publisher: PublisherProcess, sent: Callable[..., list[Sent]]
) -> None:
    for name, (key_type, literals, _) in TABLES.items():
        cql.execute(f"CREATE TABLE {fresh_keyspace}.{name} (k {key_type} PRIMARY KEY, v int) WITH cdc = true")
        for value, literal in enumerate(literals):
            cql.execute(f"INSERT INTO {fresh_keyspace}.{name} (k, v) VALUES ({literal}, {value})")
        found = {row.v for row in cql.execute(f"SELECT v FROM {fresh_keyspace}.{name}")}
        assert found == set(range(len(literals))), name  # Cassandra has a partition for each
    publisher.start()
    for name, (_, literals, with_key) in TABLES.items():
        messages = rows(sent(fresh_keyspace, name, at_least(len(literals))))
        [table] = {message.update.table.id: message.update.table for message in messages if message.update}.values()
        encoder = ChangeEncoder(table, "cdc", 1, 2, forms=EXACT)
        source = Source(1, b"h" * 16, "CommitLog-7-1.log", 1)
        encoded = [encoder.encode(RowChange(message.key or b"", (), "c", None, {}, 1, source)) for message in messages]
        keys = [key[0] for key in encoded if key is not None]
        assert (len(keys), len(set(keys))) == (with_key, with_key), name
