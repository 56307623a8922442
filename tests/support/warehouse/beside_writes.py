"""Warehouses that are loaded in a thread while tables are written to: each target in each form."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from cdc_common.settings import KafkaSettings, RegistrySettings
from stream_runtime.worker.task import Assignment
from warehouse.job.planner import TopicPlanner
from warehouse.job.run import job_of
from warehouse.job.worker_loop import open_loop
from warehouse.loading.report import LoadReport
from warehouse.names import table_name
from warehouse.settings import Settings, WarehouseSettings
from warehouse.tables.forms import FORMS
from warehouse.targets.open import open_loader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from cdc_common.errors.codes import CdcError
    from dev.local_stack.servers.addresses import Servers
    from warehouse.records import State, TableName
    from warehouse.targets.loader import Loader

END_SECONDS = 240.0
LOAD_ROWS = 200
LOADS_AT_LEAST = 20
MOST_MESSAGES = 2000


class LoadedWarehouse:
    """A job of a warehouse with one form, as a worker runs it."""

    def __init__(self, servers: Servers, keyspace: str, target: str, form: str) -> None:
        self.form = FORMS[form]
        self.settings = Settings(
            kafka=KafkaSettings(bootstrap_servers=servers.kafka, topic_prefix=servers.topic_prefix),
            registry=RegistrySettings(url=servers.registry),
            warehouse=WarehouseSettings(
                group_id=f"{keyspace}-{form}",
                target=target,
                topics=[rf"{servers.topic_prefix}\.{keyspace}\..*"],
                form=form,  # type: ignore[arg-type] # a name of a form
                load_rows=LOAD_ROWS,
                load_seconds=0.5,
                trigger_interval_ms=20,
            ),
        )
        self.loads = 0
        self.migrations = 0
        self.errors: dict[str, CdcError] = {}
        job = job_of(self.settings)
        self._planner = TopicPlanner(job)
        self._planner.check_settings()
        self._loop = open_loop(job)

    @property
    def name(self) -> str:
        return f"{self.settings.warehouse.target.partition(':')[0]} {self.form.name}"

    def run_batch(self) -> None:
        """Read once, and load what is due. Errors are those of topics."""
        plan = self._planner.plan_batch()
        for result in self._loop.run_batch(plan, Assignment(tuple(plan.shares), MOST_MESSAGES, 0.0)):
            if result.error is not None:
                self.errors[result.share.stream] = result.error
            elif result.report is not None and isinstance(result.report.own, LoadReport):
                self.loads += result.report.own.loads
                self.migrations += result.report.own.migrations

    def table(self, topic: str) -> TableName:
        return table_name(topic, self.settings.warehouse.default_schema, self.form.suffix)

    def loader(self) -> Loader:
        """One more connection. Close it."""
        return open_loader(self.settings.warehouse)

    def states(self, topics: Mapping[str, object]) -> dict[str, State | None]:
        """The state of each topic's table."""
        loader = self.loader()
        try:
            return {topic: loader.read_state(self.table(topic)) for topic in topics}
        finally:
            loader.connection.close()

    def is_behind(self, ends: Mapping[str, Mapping[int, int]]) -> list[str]:
        """The topics that are not loaded up to these offsets."""
        states = self.states(ends)
        return [
            topic
            for topic, of_topic in ends.items()
            if (state := states[topic]) is None
            or any(state.offsets.get(partition, 0) < end for partition, end in of_topic.items())
        ]

    def close(self) -> None:
        self._loop.close()


class LoadedBeside:
    """All warehouses. A context manager, in which they are loaded."""

    def __init__(self, servers: Servers, keyspace: str, targets: Sequence[str]) -> None:
        """targets: the URLs of the warehouses."""
        self.warehouses = [LoadedWarehouse(servers, keyspace, target, form) for target in targets for form in FORMS]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warehouses")
        self._failure: Exception | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        for warehouse in self.warehouses:
            warehouse.close()

    def wait_for_loads(self) -> None:
        """Wait until each warehouse has loaded some of the tables again."""
        wanted = {found.name: found.loads + LOADS_AT_LEAST for found in self.warehouses}
        deadline = time.monotonic() + END_SECONDS
        while any(found.loads < wanted[found.name] for found in self.warehouses):
            assert self._failure is None, self._failure
            assert time.monotonic() < deadline, {found.name: found.loads for found in self.warehouses}
            time.sleep(0.2)

    def load_all(self, ends: Mapping[str, Mapping[int, int]]) -> None:
        """Wait until all topics are loaded up to these offsets, and end the thread."""
        deadline = time.monotonic() + END_SECONDS
        while any((left := {found.name: found.is_behind(ends) for found in self.warehouses}).values()):
            assert self._failure is None, self._failure
            errors = {found.name: found.errors for found in self.warehouses}
            assert time.monotonic() < deadline, f"not loaded: {left}, errors: {errors}"
            time.sleep(0.5)
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for warehouse in self.warehouses:
                    warehouse.run_batch()
        except Exception as error:  # noqa: BLE001 - the test raises it
            self._failure = error
