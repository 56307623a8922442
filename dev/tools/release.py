"""Makes a release in dist/, and uploads nothing: `make release`.

`python -m dev.tools.release check` looks whether this tree can be a release. Then `make dist` builds wheels and
archives. `python -m dev.tools.release finish` adds the sdist, the bill of materials and the checksums.
Wheels, sdist and bill of materials are the same each time that a commit is built with the same tools; the archives are
not.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import click

from dev.local_stack.process.paths import project_root
from dev.tools.distribution import OUT, Project, copy_source, make_environment, read_project
from dev.tools.sbom import bill_of_materials

CHECKSUMS = "SHA256SUMS"
SDIST_SCRIPT = "import sys; from setuptools import build_meta; print(build_meta.build_sdist(sys.argv[1]))"
PUBLISHED = re.compile(r"^## \[(?P<version>\d[^]]*)\] - \d{4}-\d{2}-\d{2}$", re.MULTILINE)


@click.group()
def main() -> None:
    """The steps of make release before and after make dist."""


@main.command()
def check() -> None:
    """See whether this tree can be a release, and empty dist/. Exit status 1 with each problem and its fix."""
    found = problems(project_root(), read_project().version)
    for problem in found:
        click.echo(f"error: {problem}", err=True)
    if found:
        sys.exit(1)
    shutil.rmtree(OUT, ignore_errors=True)


@main.command()
def finish() -> None:
    """Add the sdist, the bill of materials and the checksums to what make dist has made."""
    project = read_project()
    if not list(OUT.glob("*.whl")):
        click.echo(f"error: There are no wheels in {OUT}. Run: make release", err=True)
        sys.exit(1)
    commit, at = commit_of(project_root())
    make_sdist(project, OUT, int(at.timestamp()))
    bill = bill_of_materials(project.name, project.version, commit, at)
    (OUT / f"{project.name}-{project.version}.cdx.json").write_text(bill)
    names = write_checksums(OUT)
    click.echo(f"{project.name} {project.version} of {commit[:12]}, in {OUT.name}/:")
    for name in names:
        click.echo(f"  {(OUT / name).stat().st_size / 1_000_000:8.1f} MB  {name}")
    click.echo(f"Check them with: cd {OUT.name} && sha256sum -c {CHECKSUMS}. Nothing was uploaded.")


def problems(root: Path, version: str) -> list[str]:
    """List the problems that keep a tree from being the release of a version, each with its fix."""
    found = []
    changed = _git(root, "status", "--porcelain").splitlines()
    if changed:
        found.append(f"{len(changed)} files are not committed, first {changed[0][3:]}. Commit or remove them.")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = PUBLISHED.search(changelog)
    if newest is None or newest["version"] != version:
        has = f"its newest version is {newest['version']}" if newest else "it has no version yet"
        found.append(
            f"pyproject.toml has the version {version}, and CHANGELOG.md no section for it: {has}. "
            f"Begin the section of this release with `## [{version}] - YYYY-MM-DD`."
        )
    vectors = root / "tests" / "vectors" / "releases" / version
    if not list(vectors.glob("*.json")):
        found.append(f"There are no frozen vectors in {vectors.relative_to(root)}. Run make freeze, and commit them.")
    tagged = _git(root, "tag", "--list", f"v{version}", "--format=%(objectname) %(*objectname)").split()
    if tagged and _git(root, "rev-parse", "HEAD").strip() not in tagged:
        found.append(f"The tag v{version} is at another commit. Raise the version in pyproject.toml.")
    return found


def commit_of(root: Path) -> tuple[str, datetime]:
    """HEAD's hash, and its time."""
    commit, seconds = _git(root, "log", "-1", "--format=%H %ct").split()
    return commit, datetime.fromtimestamp(int(seconds), UTC)


def make_sdist(project: Project, target: Path, seconds: int) -> Path:
    """The sdist by setuptools, packed again so that it depends on the tree and on `seconds` (since 1970) only."""
    python = make_environment(project)
    with tempfile.TemporaryDirectory() as folder:
        source = copy_source(Path(folder))
        command = [str(python), "-c", SDIST_SCRIPT, folder]
        done = subprocess.run(
            command, cwd=source, env=_environment(seconds), capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(f"error: setuptools does not make the sdist:\n{done.stderr[-2000:]}")
        made = Path(folder, done.stdout.split()[-1])
        packed = target / made.name
        packed.write_bytes(repacked(made.read_bytes(), seconds))
    return packed


def repacked(archive: bytes, seconds: int) -> bytes:
    """A .tar.gz with the same files in the order of their names, all of one time and of no owner."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as before,
        gzip.GzipFile(fileobj=out, mode="wb", mtime=seconds) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as after,
    ):
        for member in sorted(before.getmembers(), key=lambda info: info.name):
            content = before.extractfile(member)
            member.mtime, member.uid, member.gid, member.uname, member.gname = seconds, 0, 0, "", ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            after.addfile(member, content)
    return out.getvalue()


def write_checksums(folder: Path) -> list[str]:
    """The names of all files, whose SHA-256 are in SHA256SUMS then, as sha256sum writes them."""
    names = sorted(file.name for file in folder.iterdir() if file.is_file() and file.name != CHECKSUMS)
    lines = []
    for name in names:
        with (folder / name).open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {name}\n")
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
    return names


def _environment(seconds: int) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return {**kept, "SOURCE_DATE_EPOCH": str(seconds)}


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True).stdout  # noqa: S607


if __name__ == "__main__":
    main()
