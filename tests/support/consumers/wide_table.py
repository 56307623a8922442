"""One table with a column of each type, for consumers that read whole topics: its messages, and what they say."""

from __future__ import annotations

import json
from io import BytesIO
from typing import TYPE_CHECKING, Any

from fastavro import parse_schema, schemaless_reader

from cdc_common.messages.wire import HEADER_SIZE
from tests.support.consumers.messages import Encoded, TableMessages
from tests.support.consumers.typed_values import TYPES, column, number, table_of

if TYPE_CHECKING:
    from cdc_common.messages.avro.type_forms import TypeForms
    from cdc_common.messages.changes import ColumnImage

ROWS = max(len(of.values) for of in TYPES)
NAMES = {f"c{at:02}": of for at, of in enumerate(TYPES)}
TABLE = table_of("every_type", tuple(column(name, of.type) for name, of in NAMES.items()))


def wide_messages(forms: TypeForms) -> list[Encoded]:
    """A row for each value, one of nulls, one that becomes null, and one that is deleted."""
    messages = TableMessages(TABLE, forms)

    def row(at: int) -> dict[str, ColumnImage]:
        return {name: of.values[at % len(of.values)][0] for name, of in NAMES.items()}

    found = [message for at in range(ROWS) for message in messages.change(number(at, 4), (), row(at))]
    found += messages.change(number(ROWS, 4), (), {})
    for after in (row(0), {}, None):
        found += messages.change(number(ROWS + 1, 4), (), after)
    return found


def envelopes(messages: list[Encoded]) -> list[dict[str, Any]]:
    """The values as fastavro reads them, without tombstones."""
    schema = parse_schema(json.loads(messages[0].value_schema))
    values = (message.value for message in messages if message.value is not None)
    found: list[Any] = [schemaless_reader(BytesIO(value[HEADER_SIZE:]), schema, None) for value in values]
    return found
