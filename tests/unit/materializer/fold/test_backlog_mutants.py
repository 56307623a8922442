"""The check of backlogs with schema changes is checked: it must find each seeded defect."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from materializer.fold import part, write_schemas
from materializer.fold.schema_in_force import SchemaInForce
from materializer.fold.write_schemas import WriteSchemas
from tests.support.materializer.mutants import Mutant, seed
from tests.support.materializer.schema_backlogs import STEPS, backlog_of
from tests.unit.materializer.fold.test_schema_backlog import (
    NEVER_PURGE,
    check,
    test_rows_follow_each_schema_also_without_a_message_between,
    test_rows_follow_each_schema_of_a_table_that_is_created_again,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

GENERATE = settings(
    max_examples=400,
    database=None,
    derandomize=True,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
MUTANTS = (
    Mutant(
        "the whole backlog is folded under the newest schema",
        SchemaInForce._schema_of,
        "return self._advanced(current.digest, record, message)",
        "return SchemaId(table_id, self._known.newest[table_id])",
    ),
    Mutant(
        "a schema between is skipped",
        SchemaInForce.step_to,
        "for later in following if",
        "for later in reversed(following) if",
    ),
    Mutant(
        "the last schemas of a table that is created again are skipped",
        SchemaInForce.step_to,
        "self._known.newest.get(table_id, current.digest)",
        "current.digest",
    ),
    Mutant(
        "a late publisher's schema is believed",
        WriteSchemas.under,
        "found = [digest",
        "found = digests[-1:] or [digest",
    ),
    Mutant(
        "a field that was added later is taken for another type",
        write_schemas._holds,
        "is_alike or",
        "is_alike and",
    ),
    Mutant(
        "a heartbeat creates a table before its time",
        SchemaInForce._is_before_table,
        "return bool(versions) and",
        "return False and",
    ),
    Mutant(
        "the reorder buffer waits across a schema",
        part.before_schema,
        "not has_buffered(reader)",
        "True",
    ),
)


@GENERATE
@given(
    steps=STEPS,
    cuts=st.sets(st.integers(1, 25), max_size=3),
    lag=st.sampled_from([0, 3, 1000]),
    reorder_ms=st.sampled_from([0, 4000]),
)
def check_any(steps: Sequence[tuple[object, ...]], cuts: set[int], lag: int, reorder_ms: int) -> None:
    check(backlog_of(steps), cuts, lag, NEVER_PURGE._replace(reorder_ms=reorder_ms))


def check_all() -> None:
    test_rows_follow_each_schema_also_without_a_message_between()
    test_rows_follow_each_schema_of_a_table_that_is_created_again()
    check_any()


@pytest.mark.exhaustive
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_seeded_defect_is_found(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        seed(mutant, patch)
        with pytest.raises(Exception):  # noqa: B017, PT011 - a defect may show as anything
            check_all()
