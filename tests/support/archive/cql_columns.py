"""A column for each CQL type of docs/reference/data-types.md, and for each of its forms; and values of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from cdc_common.messages.avro.cql_types import AvroTypes
from cdc_common.messages.avro.type_forms import DEFAULT_FORMS, EXACT, FixedDecimal, TypeForms
from tests.support.cdc_common.messages.data_types import FORMS, ONLY_IN_FORMS, ROWS, SERIALIZED, cql_type_of
from tests.support.cdc_common.messages.extremes import EXTREMES

if TYPE_CHECKING:
    from cdc_common.messages.avro.cql_types import AvroType


class CqlColumn(NamedTuple):
    """A column of a CQL type."""

    # The type, with its form unless it is the default.
    shown: str
    # The forms of its values.
    forms: TypeForms
    # The type.
    name: str
    # An example of the page.
    example: str

    def avro_type(self, namespace: str) -> AvroType:
        """The type of the column `c`."""
        return AvroTypes(namespace, self.forms).column("c", cql_type_of(self.name), cql_name="c")

    def values(self) -> list[bytes]:
        """Values in Cassandra's serialization: the example first, and the extremes of a default form."""
        examples = [{**SERIALIZED, **ONLY_IN_FORMS}[self.name, self.example]]
        is_default = self.forms is DEFAULT_FORMS
        return examples + (EXTREMES.get(self.name.partition(", ")[0], []) if is_default else [])


def _forms_of(row: tuple[str, ...]) -> TypeForms:
    chosen: dict[str, Any] = {row[0]: row[1]}
    if row[0] == "type_forms":
        chosen = {"fixed": (("c", FixedDecimal(12, 4)),)}
    return EXACT._replace(**chosen)


CQL_COLUMNS = [
    *(CqlColumn(name, DEFAULT_FORMS, name, ROWS[name][1]) for name in ROWS),
    *(CqlColumn(f"{row[3]}, {row[0]} = {row[1]}", _forms_of(row), row[3], row[4]) for row in FORMS),
]
