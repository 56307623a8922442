"""The HTTP service: the registry with Confluent's API at the root, the catalogue's REST interface under /api/v1, and
Watson's pages under /watson.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from schematizer.api.application import rest_application
from schematizer.confluent.api import confluent_application
from schematizer.metrics import MeasuredRequests, RegistryMetrics
from schematizer.watson.application import watson_application
from schematizer.watson.forms import FormsWithoutLogin
from schematizer.watson.site import Site

if TYPE_CHECKING:
    from fastapi import FastAPI

    from schematizer.access import Access
    from schematizer.catalogue.service import Catalogue
    from schematizer.confluent.store import Store
    from schematizer.measures.sampler import Measures

REST_PATH = "/api/v1"
WATSON_PATH = "/watson"


def application(
    store: Store, catalogue: Catalogue, metrics: RegistryMetrics, access: Access, measures: Measures
) -> FastAPI:
    app = confluent_application(store, access, catalogue.rules.pii_prefix, metrics.count_database_error)
    app.mount(REST_PATH, rest_application(catalogue, access, metrics.count_database_error))
    site = Site(catalogue, access, measures, FormsWithoutLogin())
    app.mount(WATSON_PATH, watson_application(site, metrics.count_database_error))
    app.add_middleware(MeasuredRequests, metrics)
    return app
