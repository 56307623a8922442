"""Audits joins, for the command `audit`: targets against the inputs, at the cuts that they are at."""

from __future__ import annotations

import json
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from joinery.audit.compare import Comparison, Describer
from joinery.audit.cut import Cut, CutFinder
from joinery.audit.inputs import InputLoader
from joinery.audit.output import TargetFold
from joinery.audit.reading import PartitionReader
from joinery.audit.scratch import Scratch
from joinery.audit.stage import find_stage
from joinery.catalogue import open_catalogue
from joinery.faults import JOIN_FAULTS, no_such_join, rows_differ
from joinery.internal.codec import decode
from joinery.job.run import definitions_of
from stream_runtime.kafka import GroupPositions, Topics
from stream_runtime.records import SourcePartition

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from joinery.audit.compare import Difference
    from joinery.catalogue import Catalogue
    from joinery.definition import Join
    from joinery.records import Definitions, Stage
    from joinery.settings import Settings

_SHOWN = 100  # of a partition


def audit_joins(settings: Settings, file: Path, names: Sequence[str]) -> None:
    """Audit the joins of these names, or all, and print what differs. CdcError JOIN_AUDIT if joined rows differ."""
    definitions = definitions_of(settings, file)
    chosen = chosen_joins(definitions, file, names)
    with closing(open_catalogue(settings.registry)) as catalogue:
        audit = Audit(definitions, catalogue)
        count = sum([audit.audit(join) for join in chosen])
    if count:
        raise rows_differ(count)


def chosen_joins(definitions: Definitions, file: Path, names: Sequence[str]) -> list[Join]:
    """The joins of these names. CdcError CONFIG_INVALID."""
    known = {join.name: join for join in definitions.joins}
    if unknown := [name for name in names if name not in known]:
        raise no_such_join(file, unknown[0], list(known))
    return [known[name] for name in names] if names else list(known.values())


class Audit:
    """Audits of the joins of a job, which may go on."""

    def __init__(self, definitions: Definitions, catalogue: Catalogue) -> None:
        self._definitions = definitions
        self._catalogue = catalogue
        self._topics = Topics(definitions.kafka)
        group = definitions.settings.group_id
        self._positions = GroupPositions(definitions.kafka, group, JOIN_FAULTS)
        self._reader = PartitionReader(definitions.kafka, f"{group}-audit", self._topics)

    def audit(self, join: Join) -> int:
        """The number of joined rows of a join that differ. CdcError."""
        stage = find_stage(self._definitions, self._catalogue, self._topics, join)
        cuts = self._cuts(stage)
        for number, cut in sorted(cuts.items()):
            if not cut.has_begun:
                click.echo(
                    f"{join.name}: {stage.target}-{number} is not audited: its rows are loaded, and were not sent"
                )
        begun = {number: cut for number, cut in cuts.items() if cut.has_begun}
        with tempfile.TemporaryDirectory(prefix="joinery-audit-") as folder, ExitStack() as stack:
            scratches = {
                number: stack.enter_context(closing(Scratch(Path(folder, str(number))))) for number in sorted(begun)
            }
            read = InputLoader(stage, self._catalogue, begun, scratches).load(self._reader)
            self._fold_target(stage, begun, scratches)
            click.echo(f"{join.name}: {read:,} messages of the inputs")
            return sum([self._compare(stage, number, begun[number], scratches[number]) for number in sorted(begun)])

    def _cuts(self, stage: Stage) -> dict[int, Cut]:
        """The cut of each partition that has joined something."""
        partitions = [SourcePartition(stage.internal, number) for number in range(stage.internal_shape.partitions)]
        positions = self._positions.read(partitions)
        ends = {partition: position.offset for partition, position in positions.items() if position is not None}
        finders = {partition: CutFinder(len(stage.plan.inputs)) for partition in ends}
        for partition, records in self._reader.read(stage.internal_shape, ends):
            for record in records:
                finders[partition].take(record.offset, decode(record.key or b"", record.value or b""))
        return {partition.partition: finder.cut for partition, finder in finders.items()}

    def _fold_target(self, stage: Stage, cuts: Mapping[int, Cut], scratches: Mapping[int, Scratch]) -> None:
        partitions = [SourcePartition(stage.target, number) for number in cuts]
        shape = self._topics.shapes([stage.target])[stage.target]
        folds = {
            partition: TargetFold(
                stage.plan, self._catalogue, cuts[partition.partition].offset, scratches[partition.partition]
            )
            for partition in partitions
        }
        for partition, records in self._reader.read(shape, self._topics.ends(partitions)):
            folds[partition].take(records)

    def _compare(self, stage: Stage, number: int, cut: Cut, scratch: Scratch) -> int:
        comparison, describer = Comparison(stage.plan.rule, scratch), Describer(stage.plan)
        place = f"{stage.target}-{number}"
        count = 0
        for difference in comparison.differences():
            count += 1
            if count <= _SHOWN:
                click.echo(f"{place}: {_text(describer, difference)}")
        shown = f"; the first {_SHOWN} are shown" if count > _SHOWN else ""
        rows = f"{comparison.rows:,} joined rows"
        click.echo(f"{place} at offset {cut.offset:,} of {stage.internal}-{number}: {rows}, {count:,} differ{shown}")
        return count


def _text(describer: Describer, difference: Difference) -> str:
    """The difference, with the values of its key alone."""
    kind, key, names = describer.describe(difference)
    columns = f" in {', '.join(names)}" if names else ""
    at = "" if difference.found is None else f", at offset {difference.found.offset}"
    return f"{kind}{columns}: {json.dumps(key, default=_shown)}{at}"


def _shown(value: object) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
