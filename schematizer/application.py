"""The HTTP service: the registry with Confluent's API at the root, the catalogue's REST interface under /api/v1, and
Watson's pages under /watson.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.access.csrf import CookieForms
from schematizer.api.application import rest_application
from schematizer.confluent.api import confluent_application
from schematizer.metrics import MeasuredRequests, RegistryMetrics
from schematizer.security.sign_in import PATH as SIGN_IN_PATH
from schematizer.watson.application import watson_application
from schematizer.watson.forms import FormsWithoutLogin
from schematizer.watson.site import Site

if TYPE_CHECKING:
    from fastapi import FastAPI

    from schematizer.access import Access
    from schematizer.confluent.store import Store
    from schematizer.measures.sampler import Measures
    from schematizer.security.service import Security
    from schematizer.service import Catalogue

REST_PATH = "/api/v1"
WATSON_PATH = "/watson"


def application(  # noqa: PLR0913, PLR0917 - what the interfaces share
    store: Store,
    catalogue: Catalogue,
    metrics: RegistryMetrics,
    access: Access,
    measures: Measures,
    security: Security | None = None,
) -> FastAPI:
    """Return the whole application. `security` adds what is around the interfaces: its gate, signing in, and the paths
    of keys and audit log.
    """
    app = confluent_application(store, access, catalogue.rules.pii_prefix, metrics.count_database_error)
    rest = rest_application(catalogue, access, measures, metrics.count_database_error, security)
    app.mount(REST_PATH, rest)
    forms, sign_in_path = (FormsWithoutLogin(), None) if security is None else (CookieForms(), SIGN_IN_PATH)
    site = Site(catalogue, access, measures, forms, sign_in_path, rest.openapi)
    app.mount(WATSON_PATH, watson_application(site, metrics.count_database_error))
    if security is not None:
        app.mount(SIGN_IN_PATH, security.sign_in())
        app.add_middleware(security.gate, count_refusal=metrics.count_refusal)
    app.add_middleware(MeasuredRequests, metrics)
    return app
