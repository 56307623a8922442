"""Seeded defects of what the fold and a reshard do with changed schemas: random histories must find each."""

from __future__ import annotations

from materializer.commands.reshard import redistribute
from materializer.fold import row_updates, schema_version, table_runs, topic_move
from materializer.fold.partition_schema_change import PartitionSchemaChange
from materializer.fold.schema_change import SchemaChange
from tests.support.materializer.mutants import Mutant

SCHEMA_MUTANTS = [
    Mutant(
        "a dropped column's values stay",
        schema_version.shows_rows_differently,
        "old.imager.names - new.imager.names",
        "()",
    ),
    Mutant("a drop is not emitted", schema_version.change_steps, "if left != before:", "if False:"),
    Mutant(
        "a node that has not heard of a drop brings values back",
        row_updates.read_update,
        "if digest != message.schema_digest:",
        "if False:",
    ),
    Mutant(
        "a write does not wait for its partition's rows",
        SchemaChange.migrate_partition,
        "self._migrate(partition_key, now)",
        "pass",
    ),
    Mutant(
        "a partition follows a schema twice",
        SchemaChange.migrate_partition,
        'self._overlay.put(EVOLVED + prefix, b"".join(self._target.id))',
        "pass",
    ),
    Mutant(
        "late messages of a former table are folded",
        table_runs.split_by_table,
        "runs and not catalog.is_newer(table_id, runs[-1].table_id)",
        "False",
    ),
    Mutant(
        "a recreated table keeps its partitions' deletions",
        PartitionSchemaChange.delete_rows,
        "self._delete_facts(stays=is_same_topic)",
        "pass",
    ),
    Mutant(
        "a recreated table keeps the static row",
        PartitionSchemaChange._delete_facts,
        "put_static(None,",
        "put_static(self._state.static,",
    ),
    Mutant("a row that moves stays in its topic", schema_version.move_steps, "if before is not None:", "if False:"),
    Mutant(
        "a move that was cut begins again",
        SchemaChange.move_rows,
        "if continuation.at else PARTITION",
        "if False else PARTITION",
    ),
    Mutant("the second before a move is not finished", topic_move.fold_move, "if part.is_within_second:", "if False:"),
    Mutant(
        "a reshard keeps each state's schema numbers",
        redistribute.plan_redistribution,
        "schemas.setdefault(stored, len(schemas))",
        "number",
    ),
]
