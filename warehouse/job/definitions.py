"""How the tables of topics are made: as the settings say, or as topic files say (docs/guides/topic-files.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stream_runtime.driver.file_topics import FileTopics
from warehouse.names import table_name
from warehouse.tables.columns import PersonalData
from warehouse.tables.forms import FORMS, MARKED, Form

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from cdc_common.settings import RegistrySettings
    from warehouse.records import TableName
    from warehouse.settings import Settings, WarehouseSettings

_KIND = "warehouse"
"""Of the registry's notes about topic files."""
_NOTHING: dict[str, Any] = {}


class Definition(NamedTuple):
    """How the table of a topic is made."""

    # Its form.
    form: Form
    # What is done with personal fields.
    personal_data: PersonalData

    def table(self, topic: str, default_schema: str) -> TableName:
        """The table of the topic."""
        return table_name(topic, default_schema, self.form.suffix)


def file_topics(registry: RegistrySettings, own: WarehouseSettings) -> FileTopics:
    """The topics that topic files want to be loaded into this warehouse."""
    return FileTopics(registry, own.deployment, _KIND, own.name)


def definition_of(topic: str, own: WarehouseSettings, from_files: Mapping[str, Mapping[str, Any]]) -> Definition:
    """How the table of a topic is made now: what its file says counts before the settings."""
    said = from_files.get(topic, _NOTHING)
    form = said.get("form", own.form)
    deletes = said.get("deletes", "remove") if said else own.deletes
    personal_data = said.get("personal_data", own.personal_data)
    return Definition(MARKED if (form, deletes) == ("current", "mark") else FORMS[form], personal_data)


def each_definition(settings: Settings, topics: Sequence[str]) -> dict[str, Definition]:
    """How the tables of these topics are made, for a command. CdcError."""
    from_files = file_topics(settings.registry, settings.warehouse).read()
    return {topic: definition_of(topic, settings.warehouse, from_files) for topic in topics}
