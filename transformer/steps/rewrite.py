"""The native core's way from a source's messages to the target's, for a whole batch at once.

It makes the same bytes as the functions that `derive` compiles, which do what the core does not take.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import cdc_native
from cdc_common.messages.avro.encoding import encode_long
from cdc_common.messages.avro.forms import NotNativeError, form_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdc_common.messages.avro.forms import Form
    from cdc_common.messages.avro.schemas import Named, Tree
    from transformer.steps.converts import Convert

IS_NATIVE = cdc_native.is_enabled()
REFUSALS: tuple[type[Exception], ...] = ()
"""The exceptions with which the core refuses a message."""
if IS_NATIVE:
    from cdc_native.avro.messages import AvroError
    from cdc_native.avro.program import Program
    from cdc_native.avro.rewrite import Layout, Rewrite

    REFUSALS = (AvroError,)

Run: TypeAlias = tuple[int, int, tuple["Convert", ...]]
"""The source's fields [first, last) and what converts them: no conversion copies them, one field has some."""
_Op: TypeAlias = tuple[Any, ...]


def rewrite_of(tree: Tree, named: Named, row: Sequence[Run], images: Mapping[str, Sequence[Run]]) -> Rewrite | None:
    """Return the rewrite of a record's binaries, or None if the core is not in use or does not take the schema.

    row: what is made of the record's fields. images: by name, what is made of the fields of records within; those
    fields of the record are copied in `row`.
    """
    if not IS_NATIVE:
        return None
    try:
        form = form_of(tree, named)
        layout = Layout(Program(form), [(name,) for name in images])
        return Rewrite(layout, _Ops(form, images).of_row(form, (), row))
    except (NotNativeError, ValueError):
        return None


class _Ops:
    """Operations of cdc_native.avro.rewrite."""

    def __init__(self, form: Form, images: Mapping[str, Sequence[Run]]) -> None:
        self._form = form
        self._images = images

    def of_row(self, form: Form, path: tuple[str, ...], runs: Sequence[Run]) -> list[_Op]:
        ops: list[_Op] = []
        for first, last, converts in runs:
            if converts:
                ops.append(("convert", (*path, form.names[first]), [convert.native for convert in converts]))
            elif path:
                ops.append(("copy", (*path, form.names[first]), (*path, form.names[last - 1])))
            else:
                ops += [op for number in range(first, last) for op in self._copied(form, number)]
        return ops

    def _copied(self, form: Form, number: int) -> list[_Op]:
        name = form.names[number]
        runs = self._images.get(name)
        if runs is None:
            return [("copy", (name,), (name,))]
        image = form.inner[number]
        if image.kind != "optional":
            return self.of_row(image, (name,), runs)
        there = 1 - image.size
        row = self.of_row(image.inner[there], (name,), runs)
        return [("present", (name,), [("bytes", encode_long(there)), *row], [("bytes", encode_long(image.size))])]
