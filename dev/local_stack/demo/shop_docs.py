"""What the demo says of its tables: docs and owners, for the registry's pages."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

from cdc_common.errors.codes import CdcError, Code
from dev.local_stack.demo.shop import KEYSPACE

_SECONDS = 30
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
    """Puts the docs into the registry at this URL. CdcError SERVER_FAILED if it refuses them."""
    for table, said in DOCS.items():
        _put(f"{registry}/api/v1/namespaces/{prefix}.{KEYSPACE}/sources/{table}/documentation", said)


def _put(url: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method="PUT")  # noqa: S310 - our own http
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS):  # noqa: S310 - as above
            pass
    except (urllib.error.URLError, OSError) as error:
        raise CdcError(Code.SERVER_FAILED, f"PUT {url}: {error}.", "See the registry's log in .run.") from error
