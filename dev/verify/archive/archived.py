"""A topic that is archived in this process, as Spark's workers do it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from archive.events.ledger import Ledger
from archive.events.verify import LedgerCheck
from archive.files import open_store
from archive.job.planner import TopicPlanner
from archive.job.run import job_of
from archive.job.worker_loop import open_loop
from archive.registrar.thread import RegistrarThread
from archive.settings import ArchiveSettings, Settings
from cdc_common.settings import KafkaSettings, RegistrySettings
from dev.verify.archive.judges import LakeFiles
from dev.verify.archive.load import TOPIC
from stream_runtime.worker.task import Assignment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from archive.events.file_event import FileEvent

AT_ONCE, BATCH_SECONDS = 20_000, 1.0
CUTS = 20  # about as many in all
CUT_SECONDS = 5.0
END_SECONDS = 3600.0


class Archived(NamedTuple):
    """The archive of the topic in one layout."""

    # The files by the schema version of their table.
    files: dict[int, LakeFiles]
    # The database of the catalog.
    database: Path
    # What does not fit in the ledger, or could not be registered.
    problems: list[str]


def archive(
    bootstrap: str,
    registry: str,
    folder: Path,
    layout: str,
    ends: Mapping[int, int],
    ids: Sequence[int],
    count: int,
) -> Archived:
    """Archive all messages, and register their files. ids: of the schemas, the newest last."""
    database = folder / f"{layout}.db"
    catalog = {"catalog_type": "sql", "catalog_uri": f"sqlite:///{database}"} if layout == "iceberg" else {}
    own = ArchiveSettings.model_validate(
        {
            "group_id": f"verify-{layout}",
            "topics": [TOPIC],
            "location": str(folder / layout),
            "spool_directory": folder / "spool",
            "events_topic": f"verify.{layout}",
            "layout": layout,
            "cut_rows": max(count // CUTS, 1000),
            "cut_seconds": CUT_SECONDS,
            **catalog,
        }
    )
    settings = Settings(
        kafka=KafkaSettings(bootstrap_servers=bootstrap), registry=RegistrySettings(url=registry), archive=own
    )
    events = _run(settings, ends)
    problems = LedgerCheck(open_store(own.location), read_rows=True).check(events).problems
    if catalog:
        registrar = RegistrarThread(settings.kafka, own)
        registrar.run_once()
        assert registrar.registrar is not None
        problems += [error.problem for error in registrar.registrar.errors.values()]
    return Archived({version: _files(own, events, version, ids) for version in (1, 2)}, database, problems)


def _run(settings: Settings, ends: Mapping[int, int]) -> list[FileEvent]:
    job = job_of(settings)
    planner = TopicPlanner(job)
    planner.check_settings()
    ledger = Ledger(settings.kafka, settings.archive.events_topic)
    loop = open_loop(job)
    deadline = time.monotonic() + END_SECONDS
    try:
        while True:
            plan = planner.plan_batch()
            for result in loop.run_batch(plan, Assignment(plan.shares, AT_ONCE, BATCH_SECONDS)):
                if result.error is not None:
                    raise result.error
            events = [read.event for read in ledger.read()]
            done = {one.partition: one.end for event in events for one in event.ranges}
            if all(done.get(partition, 0) >= end for partition, end in ends.items()):
                return events
            if time.monotonic() > deadline:
                raise click.ClickException(f"The archive has come to {done}, not {ends}: {planner.errors}")
    finally:
        loop.close()


def _files(own: ArchiveSettings, events: Sequence[FileEvent], version: int, ids: Sequence[int]) -> LakeFiles:
    paths: list[str] = []
    samples: dict[int, str] = {}
    for event in events:
        for file in event.files:
            if file.planned.version == version:
                paths.append(f"{own.location}/{file.planned.path}")
                samples[ids.index(file.planned.schema_id or 0)] = paths[-1]
    return LakeFiles(paths, [samples[place] for place in sorted(samples)])
