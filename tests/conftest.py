"""The fixtures of all tests, and the header that says what they run against."""

from __future__ import annotations

import gc
import os
import platform
import signal
from importlib.metadata import version
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

import cdc_native
from dev.local_stack.java.jars import KAFKA
from dev.local_stack.java.runtime import installed_jre, pypi_is_forced, system_java
from dev.local_stack.servers import spark_classes
from dev.local_stack.servers.cassandra_versions import VERSIONS
from dev.local_stack.servers.s3 import ENVIRONMENT
from tests.scheduling import Scheduling

# What helpers assert is shown in detail, as in tests. It takes those that are imported after this line.
pytest.register_assert_rewrite("tests.support")

from tests.support.examples import DEFAULT, IS_EXHAUSTIVE  # noqa: E402 - as said above

if TYPE_CHECKING:
    from xdist.remote import Producer

# Servers of other tests run on the same two cores: how long an example takes says nothing about our code.
settings.register_profile(
    "beside_servers", max_examples=DEFAULT, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("beside_servers")

# What collecting the tests makes stays: the collector need not look for garbage in it, nor later look at it again.
gc.disable()

# Of this process before it forks any other.
os.environ.update(ENVIRONMENT | spark_classes.environment())

# A background job of a shell ignores Ctrl-C, and so do its children: programs that tests send SIGINT to would not end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.fix_logging",
    "tests.support.fix_servers",
    "tests.support.cassandra_storage.commitlog.fixtures",
]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if IS_EXHAUSTIVE:
        return
    for item in items:
        if item.get_closest_marker("exhaustive"):
            item.add_marker(pytest.mark.skip(reason="takes long: make exhaustive"))


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()
    gc.collect()  # the next full collection depends on how many objects this one has seen


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduling | None:
    return Scheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_report_header() -> list[str]:
    java = (None if pypi_is_forced() else system_java(17)[0]) or installed_jre(17)
    servers = "containers" if os.environ.get("SERVERS") == "containers" else "child processes"
    core = "in use" if cdc_native.is_enabled() else "off (CDC_NATIVE=0)" if cdc_native.is_compiled() else "not compiled"
    return [
        (
            f"servers: Cassandra {VERSIONS['5.0'].release}, Kafka {KAFKA.name.partition('-')[2]} ({servers}), "
            f"Spark {version('pyspark')}, {java.describe() if java else 'Java 17 from PyPI, not installed yet'}"
        ),
        f"python: {platform.python_version()}, native core {core}",
    ]
