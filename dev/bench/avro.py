"""CPU seconds per million messages of the Avro engine, beside fastavro and pyarrow in the same run.

The messages are envelopes of a table of seven columns, of 204 bytes, with one image or with two. No servers.
"""

from __future__ import annotations

import io
import statistics
import time
from typing import TYPE_CHECKING, Any

import click
import fastavro
import pyarrow as pa

from cdc_common.messages.avro.encoding import encode_string
from cdc_common.messages.avro.forms import form_of
from cdc_common.messages.avro.schemas import to_tree
from cdc_native.avro.columns import Table
from cdc_native.avro.keys import Keys, partitions
from cdc_native.avro.messages import Messages
from cdc_native.avro.program import Program
from cdc_native.avro.rewrite import Layout, Rewrite
from cdc_native.avro.rows import write_rows
from dev.bench.results import report
from tests.support.cdc_native.envelopes import ENVELOPE, envelope

if TYPE_CHECKING:
    from collections.abc import Callable

MESSAGES = 50_000
ROUNDS = 5
HEADER = b"\0\0\0\0\7"
PYTHON_SHARE = 10  # of the messages, for what takes long


def measure(work: Callable[[], object], count: int) -> float:
    """CPU seconds per million, the median of the rounds."""
    found = []
    for _ in range(ROUNDS):
        started = time.process_time()
        work()
        found.append((time.process_time() - started) / count * 1e6)
    return statistics.median(found)


class Bench:
    """The engine on one kind of message."""

    def __init__(self, *, with_before: bool) -> None:
        value = envelope(with_before=with_before)
        self.schema = fastavro.parse_schema(ENVELOPE)
        self.data = encoded(self.schema, value)
        self.messages = Messages.of([HEADER + self.data] * MESSAGES)
        self.program = Program(form_of(*to_tree(ENVELOPE)))
        self.layout = Layout(self.program, [("before",), ("after",)])
        self.table = Table(self.program)

    def figures(self) -> dict[str, float]:
        fast = measure(self._decode, MESSAGES // PYTHON_SHARE)
        batch = pa.record_batch(self.table.rows(self.messages, len(HEADER)))
        steps: dict[str, Callable[[], object]] = {
            "extents": lambda: self.layout.extents(self.messages, len(HEADER)),
            "extents and project": lambda: self._project().apply(self.messages, len(HEADER), HEADER),
            "patch": lambda: self._patch().apply(self.messages, len(HEADER), HEADER),
            "keys and partitions": self._keys,
            "columns": lambda: pa.record_batch(self.table.rows(self.messages, len(HEADER))),
            "write": lambda: write_rows(self.table, batch, HEADER),
        }
        found = {"bytes": float(len(self.data)), "fastavro: decode": fast}
        found["fastavro: encode"] = measure(self._encode, MESSAGES // PYTHON_SHARE)
        found["fastavro and pyarrow: columns"] = measure(self._python_columns, MESSAGES // PYTHON_SHARE)
        for name, work in steps.items():
            found[name] = measure(work, MESSAGES)
        return found

    def _decode(self) -> list[Any]:
        return [
            fastavro.schemaless_reader(io.BytesIO(self.data), self.schema, None)
            for _ in range(MESSAGES // PYTHON_SHARE)
        ]

    def _encode(self) -> None:
        [value, *_] = self._decode()[:1]
        for _ in range(MESSAGES // PYTHON_SHARE):
            encoded(self.schema, value)

    def _python_columns(self) -> object:
        return pa.RecordBatch.from_pylist(self._decode(), pa.schema(self.table))

    def _project(self) -> Rewrite:
        """The key, two columns of the row, and the operation."""
        columns = [("copy", ("after", name), ("after", name)) for name in ("id", "total", "email")]
        return Rewrite(self.layout, [("present", ("after",), columns, []), ("copy", ("op",), ("op",))])

    def _patch(self) -> Rewrite:
        """Five steps on both images: a mask by text, a mask by null, names, flags, and a column dropped."""
        image: list[tuple[Any, ...]] = []
        names = {number: encode_string(f"state {number}") for number in range(5)}
        for path in ("before", "after"):
            row = [
                ("copy", (path, "id"), (path, "id")),
                ("convert", (path, "email"), [("text", "branches", 0, True, encode_string("***"), None)]),
                ("bytes", b"\0"),
                ("convert", (path, "status"), [("name", "branches", 0, True, names, "keep")]),
                ("convert", (path, "bits"), [("bit", "whole", -1, False, 1, (0xFFFFFFFF, 0))]),
                ("convert", (path, "bits"), [("bit", "whole", -1, False, 4, (0xFFFFFFFF, 0))]),
                ("copy", (path, "total"), (path, "total")),
            ]
            image.append(("present", (path,), [("bytes", b"\2"), *row], [("bytes", b"\0")]))
        return Rewrite(self.layout, [*image, ("copy", ("source",), ("ts_ms",))])

    def _keys(self) -> bytes:
        keys = Keys(self.program, [("after", "id"), ("after", "email")]).apply(self.messages, len(HEADER))
        return partitions(keys, 200)


def encoded(schema: Any, value: Any) -> bytes:  # noqa: ANN401 - what fastavro takes
    file = io.BytesIO()
    fastavro.schemaless_writer(file, schema, value)
    return file.getvalue()


@click.command()
def main() -> None:
    """Measure the Avro engine."""
    rows = {
        "one image": Bench(with_before=False).figures(),
        "two images": Bench(with_before=True).figures(),
    }
    for figures in rows.values():
        figures["fastavro's decode, times extents and project"] = (
            figures["fastavro: decode"] / figures["extents and project"]
        )
        figures["fastavro's columns, times columns"] = figures["fastavro and pyarrow: columns"] / figures["columns"]
    report("avro", "CPU seconds per million messages", rows, {"messages": MESSAGES, "rounds": ROUNDS})


if __name__ == "__main__":
    main()
