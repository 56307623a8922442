"""Makes the lock files of the servers' jars again: `python -m dev.tools.jar_locks [NAME ...]`.

PySpark's Ivy resolves a set's coordinates (dev.local_stack.java.jars, dev.local_stack.servers.cassandra_versions) into
an empty folder; it compares each jar with the SHA-1 that Maven Central publishes beside it.
`CDC_IVY_SETTINGS` names an ivysettings.xml for networks that have a mirror of their own.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from dev.local_stack.java import peer_jars
from dev.local_stack.java.ivy import Ivy
from dev.local_stack.java.jars import (
    ECJ,
    FLINK_REGISTRY,
    KAFKA,
    KAFKA_TOOLS,
    S3PROXY,
    S3PROXY_WITH_CONDITIONS,
    Jar,
    JarSet,
)
from dev.local_stack.servers.cassandra_versions import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

SERVERS = (
    KAFKA,
    S3PROXY,
    S3PROXY_WITH_CONDITIONS,
    KAFKA_TOOLS,
    ECJ,
    FLINK_REGISTRY,
    *(version.jars for version in VERSIONS.values()),
)
PEERS = [found for found in vars(peer_jars).values() if isinstance(found, JarSet)]
SETS = list(dict.fromkeys([*SERVERS, *PEERS]))
NAMED = 4  # the parts of a coordinate that has a classifier
PATTERN = "[organisation]/[artifact]/[revision]/([classifier])/jar.[ext]"  # a folder for each part of a coordinate


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("dev.tools.jar_locks", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"sets: {', '.join(one.name for one in SETS)} (default: all)")
    names = parser.parse_args(arguments).names
    unknown = set(names) - {one.name for one in SETS}
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    for jars in SETS:
        if not names or jars.name in names:
            jars.lock_file.parent.mkdir(exist_ok=True)
            jars.lock_file.write_text(lock(jars, resolve(jars)), encoding="ascii")
            sys.stdout.write(f"{jars.lock_file}\n")
    return 0


def lock(jars: JarSet, found: Sequence[Jar]) -> str:
    """The text of a lock file. Its comments are the set's identity."""
    head = "".join(f"# {line}\n" for line in jars.identity.splitlines())
    return head + "".join(f"{jar.sha256} {jar.size} {jar.coordinate}\n" for jar in found)


def resolve(jars: JarSet) -> list[Jar]:
    """All that the set's coordinates need, as Ivy resolves them, sorted. SystemExit where it cannot."""
    with tempfile.TemporaryDirectory() as folder:
        failed = Ivy().resolve(jars.coordinates, jars.excludes, f"{folder}/{PATTERN}")
        if failed:
            raise SystemExit(failed)
        found = [read_jar(file, Path(folder)) for file in Path(folder).rglob("jar.*")]
        return sorted(found, key=lambda jar: jar.coordinate)


def read_jar(file: Path, root: Path) -> Jar:
    """The jar at `organisation/artifact/revision[/classifier]/jar.jar`, or what is no jar at `…/jar.EXTENSION`."""
    content = file.read_bytes()
    extension = file.name.removeprefix("jar.")
    parts = list(file.relative_to(root).parent.parts)
    if extension != "jar":
        parts += [""] * (NAMED - len(parts)) + [extension]
    coordinate = ":".join(parts)
    return Jar(coordinate, hashlib.sha256(content).hexdigest(), len(content))


if __name__ == "__main__":
    sys.exit(main())
