"""A catalogue to look at: a shop's tables with their topics, docs, owners, notes and readers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from cdc_common.clients.registry.kinds import About
from cdc_common.clients.registry.views import DataSource, FieldText, Managed, SourceDocumentation
from schematizer.catalogue.clients import ConsumerRegistration, ProducerRegistration

if TYPE_CHECKING:
    from schematizer.confluent.store import Store
    from schematizer.service import Catalogue

BY = "ada"
NAMESPACE = "cdc.shop"
TABLES: dict[str, dict[str, tuple[str, str]]] = {
    "orders": {
        "id": ("long", "bigint"),
        "customer": ("string", "text"),
        "status": ("string", "text"),
        "total": ("bytes", "decimal"),
        "note": ("string", "text"),
        "placed": ("long", "timestamp"),
    },
    "customers": {
        "name": ("string", "text"),
        "email": ("string", "text"),
        "joined": ("int", "date"),
    },
    "stock": {
        "warehouse": ("string", "text"),
        "product": ("string", "text"),
        "amount": ("int", "int"),
        "price": ("double", "double"),
    },
}
KEYS = {"orders": ("id",), "customers": ("name",), "stock": ("warehouse", "product")}
DOCUMENTED = {
    "orders": SourceDocumentation(
        doc="One row for each order that a customer has placed, from the basket to the parcel.",
        owner="team-checkout",
        fields={
            "id": FieldText(doc="The order's number, as the customer sees it."),
            "customer": FieldText(doc="Name of the customer who placed the order.", owner="team-accounts", pii=True),
            "status": FieldText(doc="new, paid, shipped or cancelled. It never goes back to new."),
            "total": FieldText(doc="What the customer pays, value added tax included, in euros."),
            "placed": FieldText(doc="When the order was confirmed (UTC)."),
        },
    ),
    "customers": SourceDocumentation(
        doc="People and companies with an account.",
        owner="team-accounts",
        fields={
            "name": FieldText(doc="Full name.", pii=True),
            "email": FieldText(doc="Address that the account was confirmed with.", pii=True),
        },
    ),
}
FILE = "acme/shop/stock/prod/topic.toml"
NOTE = """The total is **not** the sum of the lines when a voucher was used:

- the voucher is a line of its own, with a negative price
- see [the handbook](https://handbook.example/vouchers)
"""


def fill(store: Store, catalogue: Catalogue) -> None:
    """Topics of three tables, raw and change; orders has two versions, customers' topic carries personal fields."""
    for table, columns in TABLES.items():
        _register(store, table, columns)
    store.register(f"{NAMESPACE}.orders-value", envelope("orders", {**TABLES["orders"], "lines": ("string", "text")}))
    catalogue.namespaces.describe(NAMESPACE, "team-shop", "The web shop: orders, customers and stock.", by=BY)
    for table, said in DOCUMENTED.items():
        catalogue.documentation.put(NAMESPACE, table, said, by=BY)
    source = catalogue.sources.get(NAMESPACE, "orders")
    catalogue.tags.put("finance", About.SOURCE, source.id, by=BY)
    total = catalogue.documentation.field_id(NAMESPACE, "orders", "total")
    catalogue.notes.add(About.FIELD, total, NOTE, by=BY)
    catalogue.tags.put("finance", About.FIELD, total, by=BY)
    _clients(catalogue)
    _topic_file(catalogue)


def _register(store: Store, table: str, columns: dict[str, tuple[str, str]]) -> None:
    key = {"type": "record", "name": "Key", "fields": [_field(name, columns[name]) for name in KEYS[table]]}
    store.register(f"cdc.raw.shop.{table}-value", json.dumps({"type": "record", "name": "RawMessage", "fields": []}))
    store.register(f"{NAMESPACE}.{table}-key", json.dumps(key))
    store.register(f"{NAMESPACE}.{table}-value", envelope(table, columns))


def envelope(table: str, columns: dict[str, tuple[str, str]]) -> str:
    row = {"type": "record", "name": "Value", "fields": [_field(*item, nullable=True) for item in columns.items()]}
    return json.dumps(
        {
            "type": "record",
            "name": "Envelope",
            "namespace": f"{NAMESPACE}.{table}",
            "fields": [
                {"name": "before", "type": ["null", row], "default": None},
                {"name": "after", "type": ["null", "Value"], "default": None},
                {"name": "source", "type": "string"},
                {"name": "op", "type": "string"},
            ],
        }
    )


def _field(name: str, types: tuple[str, str], *, nullable: bool = False) -> dict[str, Any]:
    avro, cql = types
    if not nullable:
        return {"name": name, "type": avro, "cqlType": cql}
    return {"name": name, "type": ["null", avro], "default": None, "cqlType": cql}


def _clients(catalogue: Catalogue) -> None:
    topic = f"{NAMESPACE}.orders"
    schema_id = catalogue.topics.latest_schema(topic).schema_id
    catalogue.clients.register_producer(
        ProducerRegistration("team-data", "materializer", topic, schema_id, 3600), by=BY
    )
    catalogue.clients.register_consumer(
        ConsumerRegistration("team-checkout", "invoice-mailer", topic, "invoices", 3600), by=BY
    )
    catalogue.data_targets.put(
        "warehouse", "redshift", "redshift://warehouse/analytics", "team-bi", "Reports of the management.", by=BY
    )
    catalogue.data_targets.put_group(
        "warehouse", "warehouse-loader", [DataSource(namespace=NAMESPACE, source=None)], by=BY
    )


def _topic_file(catalogue: Catalogue) -> None:
    """The note of `topics apply` about stock's topic."""
    about = {
        "path": FILE,
        "link": f"https://git.example/topics/{FILE}",
        "typology": "changelog",
        "contact": "#logistics",
    }
    noted = Managed(kind="topic", name=f"{NAMESPACE}.stock", content={}, about=about)
    lease = catalogue.deployments.lease("prod", "ci", 60, None, by=BY)
    catalogue.deployments.change("prod", lease.token, [noted], [], by=BY)
    catalogue.deployments.release("prod", lease.token, by=BY)
