"""Packs this program and its Python environment into one archive for executors: `spark.archives=FILE#environment`.

The archive holds the packages that `cassandra-cdc-materializer[PROGRAM]` needs, in the versions installed here. It
leaves out PySpark, which Spark gives to its executors. Its interpreter is a link to this one, so the executors'
machines need the same operating system, the same processor type, and Python at the same path. (venv-pack would pack
development tools and Spark's jars too, refuses editable installations, and had its last release in 2018.)
"""

from __future__ import annotations

import importlib.util
import sysconfig
import tarfile
import tempfile
import venv
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Iterator

OWN = "cassandra-cdc-materializer"
OWN_PACKAGES = (
    "archive",
    "cassandra_storage",
    "cdc_common",
    "cdc_native",
    "filler",
    "joinery",
    "materializer",
    "publisher",
    "schematizer",
    "stream_runtime",
    "transformer",
    "warehouse",
)
"""Our packages. A job reads cdc.toml, whose tables belong to all programs."""
_THIS = "stream_runtime/query/spark_archive.py"
_OF_SPARK = frozenset({"pyspark"})
_COMPRESSION = 4  # 9, the default, takes five times the CPU for 4 % less
_UNUSED = ("pyarrow/tests/", "pyarrow/include/")


def write_archive(target: Path, program: str) -> int:
    """Write the archive of a program completely or not at all. Its size in bytes.

    CdcError(CONFIG_INVALID) if a needed package is missing or the file cannot be written.
    """
    needed = needed_distributions(program)
    part = target.with_name(f"{target.name}.part")
    try:
        with (
            tarfile.open(part, "w:gz", compresslevel=_COMPRESSION) as archive,
            tempfile.TemporaryDirectory(prefix=f"cassandra-{program}-") as folder,
        ):
            _build_environment(Path(folder), needed)
            archive.add(folder, ".")
        part.replace(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise CdcError(
            Code.CONFIG_INVALID, f"The archive cannot be written: {error}.", "Name a file in a folder with free space."
        ) from error
    return target.stat().st_size


def needed_distributions(program: str) -> dict[str, Distribution]:
    """The installed distributions that the program needs, by name, without Spark and the program itself."""
    found: dict[str, Distribution] = {}
    seen: set[tuple[str, frozenset[str]]] = set()
    todo = [(OWN, frozenset({program}))]
    while todo:
        name, extras = todo.pop()
        if (name, extras) in seen or name in _OF_SPARK:
            continue
        seen.add((name, extras))
        found[name] = _installed(name, program)
        todo += _requirements(found[name], extras)
    del found[OWN]
    return found


def _requirements(of: Distribution, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """The distributions that this one needs on this machine with these extras: (name, extras)."""
    for requirement in map(Requirement, of.requires or ()):
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""})):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _installed(name: str, program: str) -> Distribution:
    try:
        return distribution(name)
    except PackageNotFoundError as error:
        raise CdcError(
            Code.CONFIG_INVALID,
            f"The package {name}, which the {program} needs, is not installed here.",
            f"Run `pip install '{OWN}[{program}]'`, or run this command where that is installed.",
        ) from error


def _build_environment(folder: Path, needed: dict[str, Distribution]) -> None:
    """A virtual environment. It finds its packages relative to its `bin/python`, so it can be moved."""
    venv.EnvBuilder(symlinks=True).create(folder)
    base = str(folder)
    packages = Path(sysconfig.get_path("purelib", "venv", vars={"base": base, "platbase": base}))
    for one in needed.values():
        _copy_distribution(one, packages)
    _copy_own(packages)


def _copy_distribution(of: Distribution, packages: Path) -> None:
    """Copy the files that it has installed among packages, without caches and scripts, which name this interpreter."""
    for file in of.files or ():
        path = file.as_posix()
        if ".." not in file.parts and "__pycache__" not in file.parts and not path.startswith(_UNUSED):
            _copy(Path(str(file.locate())), packages / path)


def _copy_own(packages: Path) -> None:
    """Copy our packages from the place that they are imported from, with the metadata that have their version."""
    own = distribution(OWN)
    if own.read_text("RECORD") is not None and Path(str(own.locate_file(_THIS))) == Path(__file__):
        _copy_distribution(own, packages)
        return
    for name in OWN_PACKAGES:  # of an editable installation
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        source = Path(spec.origin).parent
        for file in source.rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                _copy(file, packages / name / file.relative_to(source))
    metadata = own.read_text("METADATA") or own.read_text("PKG-INFO") or ""
    folder = packages / f"{OWN.replace('-', '_')}-{own.version}.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text(metadata)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    target.chmod(source.stat().st_mode & 0o777)
