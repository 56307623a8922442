"""Schemas of messages: their decoders, and the fields of a row with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from cdc_common.messages.avro.forms import Form, NotNativeError, form_of
from cdc_common.messages.avro.schemas import to_tree
from cdc_native.avro.columns import Table
from cdc_native.avro.program import Program
from warehouse.faults import schema_refused
from warehouse.tables.marks import NoCatalogue
from warehouse.tables.types import without_null

if TYPE_CHECKING:
    from collections.abc import Mapping

    from cdc_common.messages.avro.schemas import Named, Tree
    from warehouse.tables.marks import Catalogue, Mark

_JSON = "io.debezium.data.Json"
NO_CATALOGUE = NoCatalogue()


class Registry(Protocol):
    """The requests to the schema registry: cdc_common.clients.registry.confluent.RegistryClient."""

    def get(self, schema_id: int, /) -> Any:  # noqa: ANN401 - JSON
        """The schema of an id, as JSON. CdcError."""
        ...


class Field(NamedTuple):
    """A field of a row."""

    # The name.
    name: str
    # The Avro type.
    form: Form
    # Whether it is a text that is JSON.
    is_json: bool
    # Its earlier names.
    aliases: tuple[str, ...]
    # Its documentation; empty for none.
    doc: str = ""
    # Whether its values are personal data.
    is_personal: bool = False


class RowSchema(NamedTuple):
    """How messages of a schema become rows."""

    # The id of the schema.
    schema_id: int
    # The decoder of messages.
    table: Table
    # The fields of a row.
    fields: tuple[Field, ...]
    # Whether messages are change messages, whose rows are in `after`.
    is_envelope: bool
    # Whether the source of a change message has the row's sequence.
    has_sequence: bool
    # Whether it has the time of the change.
    has_time: bool


class Schemas:
    """The schemas of a topic, by id."""

    def __init__(self, registry: Registry, topic: str, catalogue: Catalogue = NO_CATALOGUE) -> None:
        self._registry = registry
        self._topic = topic
        self._catalogue = catalogue
        self._known: dict[int, RowSchema] = {}

    def find(self, schema_id: int) -> RowSchema:
        """CdcError of the registry, or for a schema that cannot be a table."""
        if schema_id not in self._known:
            schema = self._registry.get(schema_id)
            try:
                found = row_schema(schema_id, schema)
            except (NotNativeError, ValueError) as error:
                raise schema_refused(self._topic, schema_id, getattr(error, "reason", str(error))) from error
            self._known[schema_id] = _with_marks(found, self._catalogue.marks(schema_id, self._topic))
        return self._known[schema_id]


def _with_marks(schema: RowSchema, marks: Mapping[str, Mark]) -> RowSchema:
    found = [(field, marks.get(field.name)) for field in schema.fields]
    fields = tuple(
        field if mark is None else field._replace(doc=mark.doc or field.doc, is_personal=mark.is_personal)
        for field, mark in found
    )
    return schema._replace(fields=fields)


def row_schema(schema_id: int, schema: Any) -> RowSchema:  # noqa: ANN401 - JSON
    """NotNativeError or ValueError for a schema that cannot be a table, with the reason."""
    tree, named = to_tree(schema)
    form = form_of(tree, named)
    table = Table(Program(form))
    found = pa.schema(table)
    row, row_tree, is_envelope = form, tree, _is_envelope(found)
    if is_envelope:
        at = form.names.index("after")
        row, row_tree = without_null(form.inner[at]), _without_null(tree["fields"][at]["type"], named)
    fields = tuple(
        Field(name, inner, _is_json(field["type"]), tuple(field.get("aliases", ())), field.get("doc", ""))
        for name, inner, field in zip(row.names, row.inner, row_tree["fields"], strict=True)
    )
    has_sequence, has_time = (is_envelope and _has_source(found, name) for name in ("row_sequence", "ts_us"))
    return RowSchema(schema_id, table, fields, is_envelope, has_sequence, has_time)


def _is_envelope(found: pa.Schema) -> bool:
    if any(found.get_field_index(name) < 0 for name in ("before", "after", "op")):
        return False
    return bool(pa.types.is_struct(found.field("after").type) and found.field("op").type == pa.string())


def _has_source(found: pa.Schema, name: str) -> bool:
    """Whether the source has a number of this name."""
    if found.get_field_index("source") < 0:
        return False
    source = found.field("source").type
    at = source.get_field_index(name) if pa.types.is_struct(source) else -1
    return at >= 0 and bool(source.field(at).type == pa.int64())


def _without_null(tree: Tree, named: Named) -> Tree:
    if isinstance(tree, list):
        (tree,) = [branch for branch in tree if branch != "null"]
    return named[tree] if isinstance(tree, str) else tree


def _is_json(tree: Tree) -> bool:
    branches = tree if isinstance(tree, list) else [tree]
    return any(isinstance(branch, dict) and branch.get("connect.name") == _JSON for branch in branches)
