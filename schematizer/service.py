"""The catalogue as one object: what pages, REST and commands call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.catalogue.census import Census
from schematizer.catalogue.clients import Clients
from schematizer.catalogue.deployments import Deployments
from schematizer.catalogue.deprecating import Deprecating
from schematizer.catalogue.documenting import Documenting
from schematizer.catalogue.lineage import Lineages
from schematizer.catalogue.namespaces import Namespaces, Sources
from schematizer.catalogue.outbox import Outbox
from schematizer.catalogue.overview import Overview
from schematizer.catalogue.planning import Plans
from schematizer.catalogue.records import History, Notes, Refreshes, Tags
from schematizer.catalogue.schemas import Schemas
from schematizer.catalogue.search import Search
from schematizer.catalogue.targets import DataTargets
from schematizer.catalogue.topics import Topics
from schematizer.catalogue.usage import Usage
from schematizer.registration.register import Registering

if TYPE_CHECKING:
    from schematizer.catalogue.rules import Rules
    from schematizer.model.database import Database


class Catalogue:
    """Every operation runs in one transaction. Answers are values of cdc_common.clients.registry.views; a refusal is a
    CatalogueError. `by` is the name of the one who asks, for the catalogue's changes. Several threads may use one.
    """

    def __init__(self, database: Database, rules: Rules, usage: Usage | None = None) -> None:
        """`usage`: where the registry's store notes uses."""
        self.rules = rules
        self.usage = usage or Usage(database)
        self.outbox = Outbox(database)
        self.namespaces = Namespaces(database)
        self.sources = Sources(database)
        self.topics = Topics(database, rules.pii_prefix)
        self.schemas = Schemas(database)
        self.data_targets = DataTargets(database, self.topics)
        self.clients = Clients(database, rules)
        self.documentation = Documenting(database)
        self.deprecations = Deprecating(database)
        self.registering = Registering(database, rules)
        self.deployments = Deployments(database)
        self.plans = Plans(database)
        self.census = Census(database)
        self.overview = Overview(database)
        self.lineages = Lineages(database, self.topics)
        self.search = Search(database)
        self.notes = Notes(database)
        self.tags = Tags(database)
        self.refreshes = Refreshes(database)
        self.history = History(database)
