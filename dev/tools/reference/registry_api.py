"""The tables of docs/reference/registry-api.md, from the registry's OpenAPI."""

from __future__ import annotations

import re
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dev.tools.reference.markdown import markdown_table
from schematizer.api.application import rest_application
from schematizer.catalogue.rules import Rules
from schematizer.confluent.api import confluent_application
from schematizer.confluent.guard import RULES
from schematizer.confluent.store import Store
from schematizer.measures.sampler import NoMeasures
from schematizer.model.database import Database
from schematizer.registration.mirror import Mirror
from schematizer.security.service import Security
from schematizer.service import Catalogue
from schematizer.settings import SchematizerSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI

_TABLE = re.compile(r"(<!-- (\w+): make docs-reference -->\n)(?:\|.*\n)*")


def with_tables(page: str) -> str:
    """The page with fresh tables after their comments."""
    with TemporaryDirectory() as folder:
        made = tables(f"sqlite:///{folder}/registry.db")
    return _TABLE.sub(lambda found: f"{found[1]}{made[found[2]]}\n", page)


def tables(database_url: str) -> dict[str, str]:
    """The tables by their names: `confluent` and `rest`. The database is new."""
    database = Database(database_url)
    try:
        security = Security(SchematizerSettings(database_url=database_url), database)
        catalogue = Catalogue(database, Rules())
        confluent = confluent_application(Store(database, Mirror("")), security.access, "", lambda: None)
        rest = rest_application(catalogue, security.access, NoMeasures(), lambda: None, security)
        roles = {(method, path.replace(":path", "")): rule.role.word for (method, path), rule in RULES.items()}
        return {
            "confluent": markdown_table(
                ("request", "query", "role", "answer"),
                (
                    (request, query, roles[method, path], answer)
                    for method, path, request, query, answer in _rows(confluent)
                ),
            ),
            "rest": markdown_table(("request", "query", "answer"), (row[2:] for row in _rows(rest))),
        }
    finally:
        database.close()


def _rows(app: FastAPI) -> Iterator[tuple[str, str, str, str, str]]:
    """Method, path, and the cells of each operation: request, query and answer."""
    for path, operations in app.openapi()["paths"].items():
        for name, operation in operations.items():
            method = name.upper()
            yield method, path, f"`{method} {path}`", _query(operation), " ".join(operation["description"].split())


def _query(operation: dict[str, Any]) -> str:
    return ", ".join(
        f"`{parameter['name']}`" for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
    )
