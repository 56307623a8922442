"""A release: what keeps a tree from being one, its bill of materials, its checksums; the exhaustive test makes one."""

from __future__ import annotations

import gzip
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from dev.local_stack.install.commands import REQUIREMENTS
from dev.local_stack.java.jars import LOCKS
from dev.local_stack.process.paths import project_root
from dev.tools import distribution
from dev.tools.distribution import MACHINES, PROGRAMS, read_project
from dev.tools.release import CHECKSUMS, make_sdist, problems, repacked, write_checksums
from dev.tools.sbom import bill_of_materials, locked_packages

if TYPE_CHECKING:
    from pathlib import Path

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
NAME = "cassandra-cdc-materializer"


def git(root: Path, *arguments: str) -> str:
    own = ("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false")
    command = ["git", "-C", str(root), *own, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that can be the release 1.2.0."""
    vectors = tmp_path / "tests" / "vectors" / "releases" / "1.2.0"
    vectors.mkdir(parents=True)
    (vectors / "raw.json").write_text("[]")
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-01-02\n\n## [1.1.0] - 2025-01-02\n"
    )
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "release")
    return tmp_path


def test_a_clean_tree_with_a_section_and_vectors_can_be_a_release(tree: Path) -> None:
    assert problems(tree, "1.2.0") == []
    git(tree, "tag", "v1.2.0")
    assert problems(tree, "1.2.0") == []
    git(tree, "commit", "--quiet", "--allow-empty", "-m", "later")
    assert [problem.partition(".")[0] for problem in problems(tree, "1.2.0")] == ["The tag v1"]


def test_each_problem_is_named_with_its_fix(tree: Path) -> None:
    (tree / "new.txt").touch()
    assert problems(tree, "1.2.0") == ["1 files are not committed, first new.txt. Commit or remove them."]
    (tree / "new.txt").unlink()
    changelog, vectors = problems(tree, "1.3.0")
    assert "## [1.3.0] - YYYY-MM-DD" in changelog
    assert "newest version is 1.2.0" in changelog
    assert "make freeze" in vectors
    assert len(problems(tree, "1.1.0")) == 2  # an older section is none of this release


@pytest.fixture(scope="module")
def bill() -> dict[str, Any]:
    text = bill_of_materials(NAME, "1.2.0", "0123abc", AT)
    assert text == bill_of_materials(NAME, "1.2.0", "0123abc", AT)
    found: dict[str, Any] = json.loads(text)
    return found


def test_the_bill_of_materials_lists_what_the_python_lock_lists(bill: dict[str, Any]) -> None:
    """Read by other means than the tool's: a line that begins with a name pins a version, each hash is of its file."""
    expected: dict[str, set[str]] = {}
    for line in REQUIREMENTS.read_text().splitlines():
        if line and line[0] not in "# ":
            name, _, rest = line.partition("==")
            last = expected.setdefault(f"pkg:pypi/{name}@{rest.split()[0]}", set())
        elif "sha256:" in line:
            last.add(line.split("sha256:")[1].split()[0])
    assert len(expected) > 50
    assert {
        package: hashes for package, hashes in hashes_of(bill).items() if package.startswith("pkg:pypi/")
    } == expected


def test_the_bill_of_materials_lists_the_jars_of_every_lock(bill: dict[str, Any]) -> None:
    lines = [line.split() for file in LOCKS.glob("*.txt") for line in file.read_text().splitlines() if line[0] != "#"]
    found = {
        (component["group"], component["name"], component["version"], component["hashes"][0]["content"])
        for component in bill["components"]
        if component["purl"].startswith("pkg:maven/")
    }
    assert found == {(*coordinate.split(":")[:3], sha256) for sha256, _, coordinate in lines}


def test_only_what_the_programs_need_is_required(bill: dict[str, Any]) -> None:
    required = {component["name"] for component in bill["components"] if component["scope"] == "required"}
    assert {
        "pydantic",
        "confluent-kafka",
        "pyspark",
        "rocksdict",
        "fastapi",
        "psycopg",
        "starlette",
        "py4j",
    } <= required
    assert not required & {"pytest", "ruff", "hypothesis", "mypy", "kafka_2.13", "cassandra-all"}
    edges = {dependency["ref"]: dependency.get("dependsOn", []) for dependency in bill["dependencies"]}
    assert any(edge.startswith("pkg:pypi/pyspark@") for edge in edges[f"pkg:pypi/{NAME}@1.2.0"])
    assert bill["metadata"]["timestamp"].startswith("2026-01-02T03:04:05")


def hashes_of(bill: dict[str, Any]) -> dict[str, set[str]]:
    return {
        component["bom-ref"]: {one["content"] for one in component.get("hashes", ())}
        for component in bill["components"]
    }


def test_a_line_that_pins_no_version_is_refused() -> None:
    with pytest.raises(ValueError, match="click is not pinned"):
        list(locked_packages("click>=8 \\\n    --hash=sha256:" + 64 * "0" + "\n"))


def test_sha256sum_verifies_the_checksums(tmp_path: Path) -> None:
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a b.tar.gz").write_bytes(bytes(100_000))
    assert write_checksums(tmp_path) == write_checksums(tmp_path) == ["a b.tar.gz", "b.whl"]
    assert verified(tmp_path)
    (tmp_path / "b.whl").write_bytes(b"wheeL")
    assert not verified(tmp_path)


def verified(folder: Path) -> bool:
    command = ["sha256sum", "--check", "--quiet", CHECKSUMS]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def test_an_archive_packed_again_depends_on_its_files_only(tmp_path: Path) -> None:
    packed = []
    for number, order in enumerate(("ab", "ba")):
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w:gz") as archive:
            for name in order:
                file = tmp_path / name
                file.write_text(f"content of {name}")
                os.utime(file, (number, number))
                archive.add(file, arcname=f"x-1/{name}")
        packed.append(repacked(raw.getvalue(), 1_700_000_000))
    assert packed[0] == packed[1]
    with tarfile.open(fileobj=io.BytesIO(packed[0])) as archive:
        assert [(member.name, member.mtime, member.uid) for member in archive] == [
            ("x-1/a", 1_700_000_000, 0),
            ("x-1/b", 1_700_000_000, 0),
        ]
        content = archive.extractfile("x-1/b")
        assert content is not None
        assert content.read() == b"content of b"


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_a_whole_release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The release is made in a clone that has a section for its version. It takes this tree's installation, so nothing
    is fetched twice.
    """
    root, clone, project = project_root(), tmp_path / "clone", read_project()
    git(root, "clone", "--quiet", "--no-hardlinks", str(root), str(clone))
    (clone / ".local").symlink_to(root / ".local")
    (clone / ".git" / "info" / "exclude").write_text(".local\n")
    changelog = clone / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]", f"## [{project.version}] - 2026-01-02", 1))
    refused = release(clone)
    assert refused.returncode != 0
    assert "1 files are not committed" in refused.stderr
    assert not (clone / "dist").exists()
    git(clone, "commit", "--quiet", "--all", "-m", "release")
    done = release(clone)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    dist = clone / "dist"
    names = {file.name for file in dist.iterdir()}
    assert verified(dist)
    assert {line.split(maxsplit=1)[1] for line in (dist / CHECKSUMS).read_text().splitlines()} == names - {CHECKSUMS}
    start = f"{NAME.replace('-', '_')}-{project.version}"
    assert f"{start}.tar.gz" in names
    assert f"{NAME}-{project.version}.cdx.json" in names
    assert all(any(name.startswith(start) and machine in name for name in names) for machine in MACHINES)
    assert all(any(name.startswith(f"{program}-{project.version}-") for name in names) for program in PROGRAMS)
    assert "materializer.tar.gz" in names
    assert git(clone, "status", "--porcelain") == ""
    builds_from_sdist(dist / f"{start}.tar.gz", tmp_path / "built")
    again = tmp_path / "again"
    again.mkdir()
    seconds = git(clone, "log", "-1", "--format=%ct").strip()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", seconds)
    monkeypatch.setattr(distribution, "OUT", again)
    made = [
        make_sdist(project, again, int(seconds)),
        distribution.make_wheel(distribution.make_environment(project), MACHINES[0]),
    ]
    assert {file.name: file.read_bytes() == (dist / file.name).read_bytes() for file in made} == {
        file.name: True for file in made
    }


def release(clone: Path) -> subprocess.CompletedProcess[str]:
    """`make release` without the installation, which is this tree's."""
    make = shutil.which("make")
    assert make is not None
    command = [make, "release", f"PYTHON={sys.executable}", "--assume-old=install"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True, check=False)


def builds_from_sdist(sdist: Path, target: Path) -> None:
    with gzip.open(sdist) as content:
        assert content.read(1)
    build = ["pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", str(target), str(sdist)]
    subprocess.run([sys.executable, "-m", *build], check=True)
    [wheel] = target.glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert any(name.startswith("cdc_native/") and name.endswith(".so") for name in names)
    assert any(name.startswith("schematizer/watson/templates/") for name in names)
