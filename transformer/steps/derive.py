"""Derives the schemas of a target from those of its source, and compiles the functions that transform messages.

A value is a record, or a change envelope, whose `before` and `after` have the row. What no step touches is copied byte
for byte. The steps change the columns of the key's record as they change those of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.avro.names import namespace
from cdc_common.messages.avro.schemas import definition, from_tree, references, to_tree
from cdc_common.messages.avro.skipping import read_long, skipper
from transformer.errors import StepError, TransformError
from transformer.steps.apply import apply_steps
from transformer.steps.columns import Context
from transformer.steps.rewrite import rewrite_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cdc_common.messages.avro.schemas import Named, Tree
    from cdc_native.avro.rewrite import Rewrite  # noqa: TC004 - the core may be missing
    from transformer.definition import Transformer
    from transformer.steps.columns import Record
    from transformer.steps.rewrite import Run

Transform: TypeAlias = Callable[[bytes], bytes]
"""Converts an Avro binary of the source to one of the target. TransformError."""
_Walk: TypeAlias = Callable[[bytes, int], tuple[bytes, int]]
"""The transformed value at a position, and the position after it."""

_ENVELOPE = frozenset({"before", "after", "source", "op"})
_IMAGES = ("before", "after")
SOURCE_TOPIC = "sourceTopic"


class SourceTopic(NamedTuple):
    """A source of messages."""

    # The source topic.
    topic: str
    # The Avro schema of keys, as JSON; None for keys that are null.
    key: Any
    # The Avro schema of values, as JSON.
    value: Any
    # The columns that the catalogue marks as personal.
    pii: frozenset[str] = frozenset()
    # Whether all columns that steps name have to be there, as in the newest schema.
    must_exist: bool = True


class Derived(NamedTuple):
    """The schemas of the target, and the ways from the source's keys and values to the target's."""

    # The Avro schema of the target's keys, as JSON; None if keys are null.
    key_schema: Any
    # The Avro schema of the target's values, as JSON.
    value_schema: Any
    # Transforms a key in Python.
    transform_key: Transform
    # Transforms a value in Python.
    transform_value: Transform
    # The columns of the target that are still personal.
    pii: frozenset[str]
    # The native core's way to the same bytes of a key; None without a core.
    rewrite_key: Rewrite | None = None
    # The native core's way to the same bytes of a value; None without a core.
    rewrite_value: Rewrite | None = None


def derive(transformer: Transformer, source: SourceTopic) -> Derived:
    """Derive the target's schemas from the source's. StepError for a step that does not fit the schemas."""
    keys = frozenset(_fields(source.key, "key")) if source.key is not None else frozenset()
    value = _Schema(source.value, "value")
    key = _Schema(source.key, "key") if source.key is not None else None
    rename = _Rename(value.namespace, namespace(str(transformer.target)))
    context = Context(0, value.named, keys, source.pii, source.must_exist)
    made = value.transform(transformer, context)
    key_schema: Any = None
    transform_key: Transform = _same
    if key is not None:
        in_key = context._replace(named=key.named, must_exist=False)
        key.transform(transformer, in_key)
        key_schema, transform_key = key.schema(rename, source.topic), key.function()
    personal = {name for record in made.values() for name in _personal(record)}
    return Derived(
        key_schema,
        value.schema(rename, source.topic),
        transform_key,
        value.function(),
        frozenset(personal),
        None if key is None else key.rewrite(),
        value.rewrite(),
    )


def _personal(record: Record) -> list[str]:
    """The columns of the target that are made from personal columns, and are not masked."""
    return [column.name for column in record.columns if column.is_personal and not column.is_masked]


def _same(data: bytes) -> bytes:
    return data


def _fields(schema: Any, what: str) -> list[str]:  # noqa: ANN401 - JSON
    found = _Schema(schema, what)
    return [field["name"] for field in found.tree["fields"]]


class _Rename:
    """The names of the source's namespace become those of the target's."""

    def __init__(self, before: str, after: str) -> None:
        self._before = before
        self._after = after

    def __call__(self, name: str) -> str:
        space, _, last = name.rpartition(".")
        if space == self._before:
            return f"{self._after}.{last}"
        if self._before and space.startswith(f"{self._before}."):
            return f"{self._after}{space[len(self._before) :]}.{last}"
        return name


class _Schema:
    """The schema of keys or values, and what becomes of it.

    rows: the full names of the records with columns. images: the fields of an envelope that have them, with their rows.
    """

    def __init__(self, schema: Any, what: str) -> None:  # noqa: ANN401 - JSON
        self.tree, self.named = to_tree(schema)
        if not isinstance(self.tree, dict) or self.tree["type"] != "record":
            raise StepError(0, f"the {what}'s schema is no record")
        self.namespace = self.tree["name"].rpartition(".")[0]
        self.rows, self.images = _rows(self.tree, self.named)
        self._before = dict(self.named)
        self._made: dict[str, Record] = {}

    def transform(self, transformer: Transformer, context: Context) -> Mapping[str, Record]:
        """Replace the definitions of the rows."""
        for row in self.rows:
            uses = len(self.images) if self.images else 1
            if references(self.tree, row) != uses:
                raise StepError(0, f"the record {row} stands in places other than before and after, or in itself")
            record = self._made[row] = apply_steps(transformer.step, self._before[row], context)
            if not record.columns:
                raise StepError(0, "no column is left")
            fields = [column.field for column in record.columns]
            doc = {} if record.doc is None else {"doc": record.doc}
            self.named[row] = {**self._before[row], **doc, "fields": fields}
        return self._made

    def schema(self, rename: Callable[[str], str], source_topic: str) -> Any:  # noqa: ANN401 - JSON
        """Return the schema for one topic. Each topic of a source has its own topics: messages of two topics are in no
        order. So the schemas of two topics differ, by a property, and a registry gives them topics of their own.
        """
        schema = from_tree(self.tree["name"], self.named, rename)
        schema[SOURCE_TOPIC] = source_topic
        return schema

    def function(self) -> Transform:
        if self.images:
            rows = {row: self._row_walk(row) for row in self.rows}
            walks = {
                number: _branch_walk(field["type"], self._before, rows)
                for number, field in enumerate(self.tree["fields"])
                if field["name"] in self.images
            }
            walk = _record_walk(self.tree, self._before, walks)
        else:
            walk = self._row_walk(self.tree["name"])
        return _whole(walk)

    def rewrite(self) -> Rewrite | None:
        """Return what `function` does, by the native core."""
        if not self.images:
            return rewrite_of(self.tree, self._before, _runs(self._made[self.tree["name"]]), {})
        images = {name: _runs(self._made[row]) for name, row in self.images.items()}
        return rewrite_of(self.tree, self._before, [(0, len(self.tree["fields"]), ())], images)

    def _row_walk(self, row: str) -> _Walk:
        """The columns' values are found, and those of the target made of them."""
        record = self._before[row]
        skips = [skipper(field["type"], self._before) for field in record["fields"]]
        runs = _runs(self._made[row])

        def walk(data: bytes, position: int) -> tuple[bytes, int]:
            ends = [position]
            for skip in skips:
                position = skip(data, position)
                ends.append(position)
            parts = []
            for first, last, converts in runs:
                value = data[ends[first] : ends[last]]
                for convert in converts:
                    value = convert(value)
                parts.append(value)
            return b"".join(parts), position

        return walk


def _rows(tree: dict[str, Any], named: Named) -> tuple[list[str], dict[str, str]]:
    """The records with columns, and of an envelope its fields that have them; no fields for a plain record."""
    fields = {field["name"]: field["type"] for field in tree["fields"]}
    if not fields.keys() >= _ENVELOPE:
        return [tree["name"]], {}
    images = {name: row for name in _IMAGES if (row := _image(fields[name], named)) is not None}
    if len(images) < len(_IMAGES):
        raise StepError(0, "it looks like a change envelope, but before and after are not a record or null")
    return list(dict.fromkeys(images.values())), images


def _image(tree: Tree, named: Named) -> str | None:
    """The name of the one record that an image may be."""
    branches = [branch for branch in tree if branch != "null"] if isinstance(tree, list) else [tree]
    found = definition(branches[0], named) if len(branches) == 1 else {"type": "union"}
    return found["name"] if found["type"] == "record" else None


def _runs(record: Record) -> list[Run]:
    """The parts of the target's columns, in order: the source's fields [first, last), and conversions. Fields that
    follow each other and stay as they are come in one.
    """
    runs: list[Run] = []
    for column in record.columns:
        first, last = column.source, column.source + 1
        if runs and not column.converts and not runs[-1][2] and runs[-1][1] == first:
            runs[-1] = runs[-1][0], last, ()
        else:
            runs.append((first, last, column.converts))
    return runs


def _branch_walk(tree: Tree, named: Named, rows: Mapping[str, _Walk]) -> _Walk:
    """The walk over an image, which is null or a row."""
    branches = tree if isinstance(tree, list) else [tree]
    walks = [None if branch == "null" else rows[definition(branch, named)["name"]] for branch in branches]
    if not isinstance(tree, list):
        assert walks[0] is not None
        return walks[0]

    def walk(data: bytes, position: int) -> tuple[bytes, int]:
        branch, position = read_long(data, position)
        if not 0 <= branch < len(walks):
            raise ValueError
        chosen = walks[branch]
        if chosen is None:
            return encode_long(branch), position
        made, position = chosen(data, position)
        return encode_long(branch) + made, position

    return walk


def _record_walk(record: dict[str, Any], named: Named, walks: Mapping[int, _Walk]) -> _Walk:
    """A record in which some fields are transformed and the others copied."""
    fields: Iterable[dict[str, Any]] = record["fields"]
    parts = [walks.get(number) or _copy_walk(field["type"], named) for number, field in enumerate(fields)]

    def walk(data: bytes, position: int) -> tuple[bytes, int]:
        made = []
        for part in parts:
            value, position = part(data, position)
            made.append(value)
        return b"".join(made), position

    return walk


def _copy_walk(tree: Tree, named: Named) -> _Walk:
    skip = skipper(tree, named)

    def walk(data: bytes, position: int) -> tuple[bytes, int]:
        end = skip(data, position)
        return data[position:end], end

    return walk


def _whole(walk: _Walk) -> Transform:
    """The transform of a whole message, which must end where its value does."""

    def transform(data: bytes) -> bytes:
        try:
            made, end = walk(data, 0)
        except (IndexError, ValueError, RecursionError) as error:
            raise TransformError("it does not have the schema that its header names") from error
        if end != len(data):
            raise TransformError("it does not have the schema that its header names")
        return made

    return transform
