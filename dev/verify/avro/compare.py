"""The Avro engine beside Java's Avro on messages of random schemas: fields' ends, chosen fields, and rows back."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cdc_native.avro.columns import Table
from cdc_native.avro.messages import AvroError, Messages
from cdc_native.avro.rewrite import Layout, Rewrite
from cdc_native.avro.rows import write_rows
from tests.support.cdc_native.avro_cases import Case, Schemas
from tests.support.cdc_native.avro_checks import damaged

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from dev.verify.avro.judge import JavaJudge, Judged

WHOLE = 70  # messages of a schema
IN_BLOCKS = 10
DAMAGED = 20


@dataclass
class Found:
    """The counts of a comparison."""

    # The number of messages.
    messages: int = 0
    # The number of rows that were read and written again.
    rows: int = 0
    # The number of damaged messages that both take.
    both_take: int = 0
    # The number of damaged messages that both refuse.
    both_refuse: int = 0
    # The number of damaged messages that only Java takes.
    only_java_takes: int = 0
    # The number of damaged messages that only the engine takes.
    only_engine_takes: int = 0
    # A line for each difference between the engine and Java.
    differences: list[str] = field(default_factory=list)

    def check(self, is_equal: bool, what: str, case: Case, message: bytes) -> None:  # noqa: FBT001 - what is checked
        if not is_equal:
            self.differences.append(f"{what}: schema {case.schema}, message {message.hex()}")


def compare_schema(java: JavaJudge, rng: random.Random, found: Found) -> None:
    """Messages of one random schema."""
    with_unions = rng.random() < 0.3
    case = Case.of(Schemas(rng, with_unions).record())
    plain = [case.message(rng) for _ in range(WHOLE)]
    whole = [*plain, *(case.message(rng, in_blocks=True) for _ in range(IN_BLOCKS))]
    names = rng.sample(case.form.names, rng.randint(1, len(case.form.names)))
    judged = java.judge(case.schema, names, whole)
    _compare_fields(case, whole, judged, found)
    _compare_chosen(java, case, names, list(zip(whole, judged, strict=True)), found)
    if not with_unions:
        _compare_rows(case, whole, judged, found)
        _compare_damaged(java, case, [damaged(rng, rng.choice(whole)) for _ in range(DAMAGED)], found)
    found.messages += len(whole) + (0 if with_unions else DAMAGED)


def _compare_fields(case: Case, whole: Sequence[bytes], judged: Sequence[Judged | None], found: Found) -> None:
    extents = Layout(case.program).extents(Messages.of(whole))
    for number, (message, verdict) in enumerate(zip(whole, judged, strict=True)):
        ours = tuple((extents.of(number, (name,)) or (0, 0))[1] for name in case.form.names)
        found.check(verdict is not None and verdict.ends == ours, "ends", case, message)


def _compare_chosen(
    java: JavaJudge, case: Case, names: Sequence[str], pairs: Sequence[tuple[bytes, Judged | None]], found: Found
) -> None:
    """Check that Java reads with the chosen fields what the engine puts together. Both may have other blocks."""
    rewrite = Rewrite(Layout(case.program), [("copy", (name,), (name,)) for name in names])
    made = rewrite.apply(Messages.of([message for message, _ in pairs])).to_list()
    schema = chosen(case.schema, names)
    again = java.judge(schema, names, [message or b"" for message in made])
    for (message, verdict), ours in zip(pairs, again, strict=True):
        is_equal = verdict is not None and ours is not None and ours.whole == verdict.chosen
        found.check(is_equal, f"fields {names}", case, message)


def chosen(schema: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - JSON
    """The schema of a record with some of its fields: a type that is named before its definition is put there."""
    fields = {column["name"]: column["type"] for column in schema["fields"]}
    defined: dict[str, Any] = {}
    made = []
    for name in names:
        type_ = fields[name]
        if name == "again" and "f0" not in names[: list(names).index(name)]:
            type_, defined = fields["f0"], {"f0": type_}
        elif name in defined:
            type_ = defined[name]
        made.append({"name": name, "type": type_})
    return {"type": "record", "name": schema["name"], "fields": made}


def _compare_rows(case: Case, whole: Sequence[bytes], judged: Sequence[Judged | None], found: Found) -> None:
    """Columns of the messages, written as messages again, are what Java writes. A decimal may have other bytes."""
    if '"decimal"' in str(case.schema).replace("'", '"'):
        return
    table = Table(case.program)
    back = write_rows(table, pa.record_batch(table.rows(Messages.of(whole)))).to_list()
    for message, verdict, ours in zip(whole, judged, back, strict=True):
        found.check(verdict is not None and verdict.whole == ours, "rows", case, message)
    found.rows += len(whole)


def _compare_damaged(java: JavaJudge, case: Case, messages: Sequence[bytes], found: Found) -> None:
    """A message that both take has the same fields. Java alone refuses an int of more than five bytes. Then the engine
    makes no columns of the message, or such that Java takes what is written of them.
    """
    layout, table = Layout(case.program), Table(case.program)
    for message, verdict in zip(messages, java.judge(case.schema, case.form.names, messages), strict=True):
        try:
            extents = layout.extents(Messages.of([message]))
        except AvroError:
            found.both_refuse += verdict is None
            found.only_java_takes += verdict is not None
            continue
        if verdict is not None:
            ours = tuple((extents.of(0, (name,)) or (0, 0))[1] for name in case.form.names)
            found.both_take += 1
            found.check(verdict.ends == ours, "damaged", case, message)
            continue
        found.only_engine_takes += 1
        with suppress(ValueError):
            [back] = write_rows(table, pa.record_batch(table.rows(Messages.of([message])))).to_list()
            [again] = java.judge(case.schema, case.form.names, [back or b""])
            found.check(again is not None, "rows of damaged", case, message)
