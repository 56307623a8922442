"""Docs and owners of the demo's tables, for the registry's pages."""

from __future__ import annotations

from typing import Any

from cdc_common.clients.registry.schematizer import SchematizerClient
from cdc_common.clients.registry.views import SourceDocumentation
from dev.local_stack.demo.shop import KEYSPACE

DOCS: dict[str, dict[str, Any]] = {
    "orders": {
        "owner": "team-checkout",
        "doc": "One row for each order that a customer has placed, from the basket to the parcel.",
        "fields": {
            "id": {"doc": "The order's number, as the customer sees it."},
            "customer": {"doc": "Name of the customer who placed the order.", "owner": "team-accounts"},
            "status": {"doc": "new, paid, shipped or cancelled."},
            "total": {"doc": "What the customer pays, value added tax included, in euros."},
            "lines": {"doc": "Products, and how many of each."},
            "placed": {"doc": "When the order was confirmed (UTC)."},
        },
    },
    "customers": {
        "owner": "team-accounts",
        "doc": "People and companies with an account.",
        "fields": {
            "name": {"doc": "Full name."},
            "email": {"doc": "Address that the account was confirmed with."},
            "home": {"doc": "Where parcels go, unless the order says otherwise."},
            "joined": {"doc": "Day on which the account was made."},
        },
    },
    "stock": {
        "owner": "team-warehouse",
        "doc": "What lies in which warehouse, and for how much it is sold.",
        "fields": {
            "warehouse": {"doc": "Code of the building."},
            "product": {"doc": "Article number."},
            "amount": {"doc": "Pieces on the shelf; never below zero."},
            "price": {"doc": "Price of one piece, in euros."},
            "manager": {"doc": "Who answers for the warehouse."},
        },
    },
}


def describe(registry: str, prefix: str) -> None:
    """Puts the docs into the registry at this URL. RegistryRequestError."""
    with SchematizerClient(registry) as client:
        for table, documentation in DOCS.items():
            client.document(f"{prefix}.{KEYSPACE}", table, SourceDocumentation.model_validate(documentation))
