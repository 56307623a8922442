"""The generated pages: the path of each, and the function that makes its text of what it is now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dev.tools.reference.alerts_table import with_alerts
from dev.tools.reference.cli_page import cli_page
from dev.tools.reference.configuration_page import configuration_page
from dev.tools.reference.errors_page import errors_page
from dev.tools.reference.fault_points_page import with_fault_points
from dev.tools.reference.kafka_errors_page import kafka_errors_page
from dev.tools.reference.library_api import library_api_page
from dev.tools.reference.metrics_page import metrics_page
from dev.tools.reference.module_map import with_module_map
from dev.tools.reference.native_constants import native_constants
from dev.tools.reference.registry_api import with_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

PAGES: Mapping[str, Callable[[str], str]] = {
    "cdc_native/formats/constants.pxd": native_constants,
    "docs/guides/monitor.md": with_alerts,
    "docs/reference/cli.md": lambda _: cli_page(),
    "docs/reference/configuration.md": lambda _: configuration_page(),
    "docs/reference/errors.md": lambda _: errors_page(),
    "docs/reference/kafka-errors.md": lambda _: kafka_errors_page(),
    "docs/reference/library-api.md": lambda _: library_api_page(),
    "docs/reference/metrics.md": lambda _: metrics_page(),
    "docs/reference/registry-api.md": with_tables,
    "docs/internals/code.md": with_module_map,
    "docs/internals/fault-points.md": with_fault_points,
}
"""Those that take the page are written by hand up to a heading, or around the tables, that are generated."""
