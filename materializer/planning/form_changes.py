"""Refuses another form of a running topic's columns (materializer.decimals and its neighbours).

A topic's messages all have the form that it began with. A registry does not see a change of form where Avro reads both:
bytes as a string, decimals of two scales.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from materializer.planning.avro_schemas import AvroSchemas

Field = dict[str, Any]
_SIGNS = ("logicalType", "precision", "scale")


class Latest(Protocol):
    """cdc_common.clients.registry.confluent.RegistryClient."""

    def latest(self, subject: str) -> tuple[int, dict[str, Any]] | None: ...


def check_forms(registry: Latest, topic: str, avros: Sequence[AvroSchemas]) -> None:
    """Raise CdcError(FORM_CHANGED) if the topic has a column of the newest of `avros` in another form."""
    newest = avros[-1]
    key, value = registry.latest(f"{topic}-key"), registry.latest(f"{topic}-value")
    if key is None or value is None:
        return
    problem = next(changed_forms(newest, key[1], value[1]), None)
    if problem is None:
        return
    raise CdcError(
        Code.FORM_CHANGED,
        f"The settings give {newest.table.qualified_name} other forms than its topic {topic} has: {problem}.",
        "Set the forms that the topic has: materializer.type_forms takes them by table. How to change them: "
        "docs/guides/consumers.md.",
    )


def changed_forms(newest: AvroSchemas, key: dict[str, Any], value: dict[str, Any]) -> Iterator[str]:
    """How the topic's key and value schemas differ in form from the newest ones: of each column, in words."""
    former = _row_fields(value)
    present = _row_fields(newest.value)
    for name, field in present.items():
        old = former.get(name)
        if old is None or old.get("cqlType") != field.get("cqlType"):
            continue  # another column, or another type: the registry and misread_topics judge that
        if _form(old["type"]) != _form(field["type"]) and old.get("cqlColumn") == field.get("cqlColumn"):
            yield f"{field.get('cqlName', name)} was {_words(old['type'])}, and would be {_words(field['type'])}"
    yield from _changed_parts(former, present)
    statics = former.keys() & {names for names, field in present.items() if field.get("static")}
    nullable, was_nullable = (any(map(_is_nullable, schema["fields"])) for schema in (newest.key, key))
    if statics and nullable != was_nullable:
        words = ("include", "leave_out") if was_nullable else ("leave_out", "include")
        yield f"static_rows was {words[0]}, and would be {words[1]}"


def _changed_parts(former: dict[str, Field], present: dict[str, Field]) -> Iterator[str]:
    """The columns that are one field on one side, and a field for each of their parts on the other."""
    were, are = _split_columns(former), _split_columns(present)
    for column in sorted(were.keys() & are.keys()):
        if were[column] != are[column]:
            words = ("one field", "columns") if are[column] else ("columns", "one field")
            yield f"{column} was {words[0]}, and would be {words[1]}"
    for name in sorted(former.keys() & present.keys()):
        one, other = former[name], present[name]
        if one.get("cqlColumn") != other.get("cqlColumn"):
            yield f"field {name} was {_meaning(one)}, and would be {_meaning(other)}"


def _split_columns(fields: dict[str, Field]) -> dict[str, bool]:
    """Whether the parts of a column are fields, by the columns' CQL names."""
    found: dict[str, bool] = {}
    for name, field in fields.items():
        found[field.get("cqlColumn") or field.get("cqlName") or name] = "cqlColumn" in field
    return found


def _meaning(field: Field) -> str:
    return f"{'a part of ' if 'cqlColumn' in field else 'column '}{field.get('cqlColumn', field['name'])}"


def _row_fields(envelope: dict[str, Any]) -> dict[str, Field]:
    [row] = [branch for branch in envelope["fields"][0]["type"] if isinstance(branch, dict)]
    return {field["name"]: field for field in row["fields"]}


def _is_nullable(field: Field) -> bool:
    return isinstance(field["type"], list)


def _form(schema: Any) -> tuple[Any, ...]:  # noqa: ANN401 - Avro's JSON
    """Return the form of a type as readers see it. It leaves out the names of user types' fields, which change by
    themselves.
    """
    if isinstance(schema, list):
        return _form(next(branch for branch in schema if branch != "null"))
    if isinstance(schema, str):
        return ("record",) if "." in schema else (schema,)
    kind = schema["type"]
    if kind == "record":
        return ("record",)
    inner = tuple(_form(schema[part]) for part in ("items", "values") if part in schema)
    signs = tuple(schema.get(sign) for sign in _SIGNS) if any(sign in schema for sign in _SIGNS) else ()
    return (kind, *signs, *inner)


def _words(schema: Any) -> str:  # noqa: ANN401 - Avro's JSON
    kind, *rest = _form(schema)
    if "decimal" in rest:
        return f"decimal({rest[1]},{rest[2] or 0})"
    return f"{kind} of {rest[-1][0]}" if rest and isinstance(rest[-1], tuple) else str(kind)
