"""The tables that a worker loads by signals. They share one consumer and one connection to the warehouse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warehouse.job.open_tables import OpenTables
from warehouse.job.plan import source_of
from warehouse.loading.signal_task import SignalSettings, SignalSource, SignalTask
from warehouse.loading.table_columns import ColumnRules

if TYPE_CHECKING:
    from stream_runtime.records import Share
    from warehouse.job.plan import WarehousePlan


class OpenSignals(OpenTables):
    """A share has all partitions of a topic of signals."""

    def open_task(self, plan: WarehousePlan, share: Share) -> SignalTask:
        own, definition = self._job.settings, plan.definitions[share.stream]
        topic = source_of(share.stream, own)
        table = definition.table(topic, own.default_schema)
        loader = self._loader.of_form(definition.form)
        rules = ColumnRules(topic, definition.personal_data, loader.connection.dialect, definition.form)
        source = SignalSource(table, topic, share.stream, plan.shapes[share.stream])
        return SignalTask(
            source, loader, self._schemas(topic), rules, SignalSettings(own.load_signals, own.load_signal_seconds)
        )
