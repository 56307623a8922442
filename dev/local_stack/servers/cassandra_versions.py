"""The differences between Cassandra versions that matter when a node starts, as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dev.local_stack.java.jars import JarSet

TOOL_CLASS = "org.apache.cassandra.tools.NodeTool"
ALL_UNNAMED = "=ALL-UNNAMED"
_EXPORTS = (
    "java.base/jdk.internal.misc",
    "java.base/sun.nio.ch",
    "java.management.rmi/com.sun.jmx.remote.internal.rmi",
    "java.rmi/sun.rmi.registry",
    "java.rmi/sun.rmi.server",
    "java.sql/java.sql",
)
_OPENS = (
    "java.base/java.lang.module",
    "java.base/jdk.internal.loader",
    "java.base/jdk.internal.ref",
    "java.base/jdk.internal.reflect",
    "java.base/jdk.internal.math",
    "java.base/jdk.internal.module",
    "java.base/jdk.internal.util.jar",
    "jdk.management/com.sun.management.internal",
)
EXPORTS: Mapping[int, tuple[str, ...]] = {
    11: (*_EXPORTS, "java.base/jdk.internal.ref"),
    17: (*_EXPORTS, "java.base/java.lang.ref", "jdk.unsupported/sun.misc", "jdk.compiler/com.sun.tools.javac.file"),
}
OPENS: Mapping[int, tuple[str, ...]] = {
    11: _OPENS,
    17: (
        *_OPENS,
        "java.base/sun.nio.ch",
        "java.base/java.io",
        "java.base/java.nio",
        "java.base/java.util",
        "java.base/java.util.concurrent",
        "java.base/java.util.concurrent.atomic",
        "java.base/java.lang",
        "java.base/java.lang.reflect",
        "java.base/java.math",
        "java.base/java.net",
    ),
}

# Our names for sizes and periods → (name until 4.0, name from 4.1 on, unit from 4.1 on).
SPELLINGS: Mapping[str, tuple[str, str, str]] = {
    "commitlog_sync_period_ms": ("commitlog_sync_period_in_ms", "commitlog_sync_period", "ms"),
    "commitlog_segment_mib": ("commitlog_segment_size_in_mb", "commitlog_segment_size", "MiB"),
    "cdc_total_space_mib": ("cdc_total_space_in_mb", "cdc_total_space", "MiB"),
    "cdc_free_space_check_ms": ("cdc_free_space_check_interval_ms", "cdc_free_space_check_interval", "ms"),
    "file_cache_mib": ("file_cache_size_in_mb", "file_cache_size", "MiB"),
}


@dataclass(frozen=True, slots=True)
class CassandraVersion:
    """One line of releases, or one with settings that change what it writes."""

    # The line, such as `5.0`.
    line: str
    # The release that runs, such as `5.0.8`.
    release: str
    # The major version of Java.
    java: int
    # The jars of the server.
    jars: JarSet
    # Whether yaml keys are as before 4.1.
    old_spellings: bool = False
    # Whether seeds are host:port.
    seed_has_port: bool = True
    # Whether CQL shows the node's settings, such as the folders of its data.
    tells_settings: bool = True
    # The class that runs nodetool: NodeTool itself, or a class of java_shims around it.
    tool_class: str = TOOL_CLASS
    # The compressors of commit logs: class names without the last word.
    compressors: tuple[str, ...] = ("LZ4", "Snappy", "Deflate", "Zstd")
    # The settings that the version needs besides.
    yaml: Mapping[str, object] = field(default_factory=dict)

    def spell(self, name: str, value: int) -> tuple[str, object]:
        """The yaml entry for one of SPELLINGS."""
        old, new, unit = SPELLINGS[name]
        return (old, value) if self.old_spellings else (new, f"{value}{unit}")

    def module_options(self) -> list[str]:
        """JVM options that open what Cassandra and its NodeTool reach into."""
        exports = [f"--add-exports={one}{ALL_UNNAMED}" for one in EXPORTS[self.java]]
        return exports + [f"--add-opens={one}{ALL_UNNAMED}" for one in OPENS[self.java]]


def _jars(release: str, *more: str) -> JarSet:
    return JarSet(f"cassandra-{release}", (f"org.apache.cassandra:cassandra-all:{release}", *more))


VERSIONS: Mapping[str, CassandraVersion] = {
    version.line: version
    for version in (
        CassandraVersion("5.0", "5.0.8", 17, _jars("5.0.8")),
        # Commit log version 8 and messaging version 13, where plain 5.0 writes what 4.x could read.
        CassandraVersion("5.0-NONE", "5.0.8", 17, _jars("5.0.8"), yaml={"storage_compatibility_mode": "NONE"}),
        CassandraVersion("4.1", "4.1.10", 11, _jars("4.1.10")),
        CassandraVersion("4.0", "4.0.19", 11, _jars("4.0.19"), old_spellings=True),
        CassandraVersion(
            "3.11",
            "3.11.19",
            11,
            # The daemon's class refers to Thrift's, which cassandra-all names only as optional.
            _jars("3.11.19", "org.apache.cassandra:cassandra-thrift:3.11.19"),
            old_spellings=True,
            seed_has_port=False,
            tells_settings=False,
            tool_class="ClientTool",
            compressors=("LZ4", "Snappy", "Deflate"),
        ),
    )
}
