"""The settings of all programs: one TOML file, `cdc.toml`, overridden by the environment and then by flags.

This package is the only place that defines a setting, its default and its meaning. configuration.md is generated
from it. There is one module for each program, and `shared` for what several programs use.
"""

from __future__ import annotations

from cdc_program.settings.base import Table
from cdc_program.settings.filler import FillerSettings
from cdc_program.settings.job import JobSettings
from cdc_program.settings.materializer import MaterializerSettings
from cdc_program.settings.publisher import PublisherSettings
from cdc_program.settings.schematizer import SchematizerSettings
from cdc_program.settings.shared import CassandraSettings, KafkaSettings, LogSettings, NodeSettings, RegistrySettings
from cdc_program.settings.transformer import TransformerSettings


class Settings(Table):
    """All of cdc.toml."""

    cassandra: CassandraSettings = CassandraSettings()
    kafka: KafkaSettings = KafkaSettings()
    registry: RegistrySettings = RegistrySettings()
    node: NodeSettings = NodeSettings()
    publisher: PublisherSettings = PublisherSettings()
    filler: FillerSettings = FillerSettings()
    materializer: MaterializerSettings = MaterializerSettings()
    transformer: TransformerSettings = TransformerSettings()
    schematizer: SchematizerSettings = SchematizerSettings()
    log: LogSettings = LogSettings()


__all__ = [
    "CassandraSettings",
    "FillerSettings",
    "JobSettings",
    "KafkaSettings",
    "LogSettings",
    "MaterializerSettings",
    "NodeSettings",
    "PublisherSettings",
    "RegistrySettings",
    "SchematizerSettings",
    "Settings",
    "TransformerSettings",
]
