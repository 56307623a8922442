"""The catalogue as one object: what pages, REST and commands call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from schematizer.catalogue.clients import Clients
from schematizer.catalogue.namespaces import Namespaces, Sources
from schematizer.catalogue.records import History, Notes, Refreshes, Tags
from schematizer.catalogue.schemas import Schemas
from schematizer.catalogue.targets import DataTargets
from schematizer.catalogue.topics import Topics

if TYPE_CHECKING:
    from schematizer.model.database import Database


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings say of the catalogue. `pii_prefix`: what names of topics with personal fields begin with."""

    pii_prefix: str = "pii-"


class Catalogue:
    """Every operation runs in one transaction and answers values of schematizer.views; CatalogueError if it is refused.
    `by` is the name of the one who asks, for the catalogue's changes. Several threads may use one.
    """

    def __init__(self, database: Database, rules: Rules) -> None:
        self.rules = rules
        self.namespaces = Namespaces(database)
        self.sources = Sources(database)
        self.topics = Topics(database, rules.pii_prefix)
        self.schemas = Schemas(database)
        self.data_targets = DataTargets(database, self.topics)
        self.clients = Clients(database)
        self.notes = Notes(database)
        self.tags = Tags(database)
        self.refreshes = Refreshes(database)
        self.history = History(database)
