"""make install compiles what was edited and nothing else; the lock of packages is what pyproject.toml asks for."""

from __future__ import annotations

import json
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES
from typing import TYPE_CHECKING

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from dev.local_stack.install import commands, core
from dev.local_stack.process.paths import project_root

if TYPE_CHECKING:
    from pathlib import Path


class Checkout:
    """Two modules of a core in a folder of the test's. `runs` has the modules that each compilation found missing."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.package = folder / "cdc_native"
        (self.package / "room").mkdir(parents=True)
        (folder / "setup.py").write_text("")
        for name in ("fold.pyx", "split.pyx", "buffers.pxd"):
            (self.package / "room" / name).write_text("first")
        self.runs: list[list[str]] = []
        self.works = True
        self.needs_zig = False
        self.installed: list[str] = []
        self.build_tools: list[str | None] = [None]
        patch.setattr(core, "ROOT", folder)
        patch.setattr(core, "PACKAGE", self.package)
        patch.setattr(core, "STAMP", self.package / ".compiled.json")
        patch.setattr(core, "C_FILES", folder / "build")
        patch.setattr(core, "run_command", self._compile)
        patch.setattr(core, "output_of", lambda _: f"{self.needs_zig}\n")
        patch.setattr(core, "_build_tools", lambda: self.build_tools)
        patch.setattr(core, "install_locked", lambda _, is_wanted: self._install(is_wanted("ziglang")))

    def _install(self, is_zig: bool) -> None:  # noqa: FBT001  the answer to one question
        self.installed.append("ziglang" if is_zig else "something else")

    def _compile(self, command: list[str]) -> None:
        assert command[1:] == ["setup.py", "--quiet", "build_ext", "--inplace"]
        missing = [name for name in ("fold", "split") if not self.output(name).exists()]
        self.runs.append(missing)
        for name in missing if self.works else []:
            self.output(name).write_text("compiled")

    def output(self, name: str) -> Path:
        return self.package / "room" / f"{name}{EXTENSION_SUFFIXES[0]}"

    def build(self) -> list[list[str]]:
        """Return the compilations that a make command runs."""
        self.runs = []
        core.build_core(self.package)
        return self.runs


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    return Checkout(tmp_path, monkeypatch)


def test_it_is_compiled_once(checkout: Checkout) -> None:
    assert checkout.build() == [["fold", "split"]]
    assert checkout.build() == []


def test_an_edited_module_alone_is_compiled_again(checkout: Checkout) -> None:
    checkout.build()
    (checkout.package / "room" / "fold.pyx").write_text("second")
    assert checkout.build() == [["fold"]]
    assert checkout.build() == []


@pytest.mark.parametrize("name", ["cdc_native/room/buffers.pxd", "setup.py"])
def test_what_all_depend_on_compiles_all(checkout: Checkout, name: str) -> None:
    checkout.build()
    (checkout.package.parent / name).write_text("second")
    assert checkout.build() == [["fold", "split"]]


def test_a_compiled_module_that_is_gone_is_made_again(checkout: Checkout) -> None:
    checkout.build()
    checkout.output("split").unlink()
    assert checkout.build() == [["split"]]


def test_a_compiled_module_without_its_source_is_removed(checkout: Checkout) -> None:
    checkout.build()
    left = checkout.package / f"fold{EXTENSION_SUFFIXES[0]}"
    left.write_text("of the folder that it was in")
    (checkout.package / "room" / "split.pyx").unlink()
    (checkout.package / "room" / "fold.pyx").write_text("second")
    assert checkout.build() == [["fold", "split"]]
    assert not left.exists()


def test_without_a_compiler_it_is_tried_once_until_there_is_one(
    checkout: Checkout, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.works = False
    assert len(checkout.build()) == 1
    assert checkout.build() == []
    assert "could not be compiled (CDC-007)" in capsys.readouterr().err
    checkout.build_tools, checkout.works = ["/usr/bin/cc"], True
    assert checkout.build() == [["fold", "split"]]
    assert json.loads(core.STAMP.read_text())["is_compiled"] is True


def test_zig_is_installed_only_where_setup_asks_for_it(checkout: Checkout) -> None:
    checkout.build()
    assert checkout.installed == []
    (checkout.package / "room" / "fold.pyx").write_text("second")
    checkout.needs_zig = True
    checkout.build()
    assert checkout.installed == ["ziglang"]


def locked() -> dict[str, str]:
    """Versions by name; of a package that is locked in several, the first."""
    versions: dict[str, str] = {}
    for line in commands.REQUIREMENTS.read_text().splitlines():
        if line[0] not in " #":
            name, _, version = line.partition(" ")[0].partition("==")
            versions.setdefault(name, version)
    return versions


def test_the_lock_satisfies_pyproject() -> None:
    """If not: python -m dev.tools.python_lock."""
    with (project_root() / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    zig = [name for name in extras["distribution"] if name.startswith("ziglang")]
    todo, versions = [*project["dependencies"], *extras["dev"], *zig], locked()
    seen = set()
    while todo:
        wanted = Requirement(todo.pop())
        if wanted.name == project["name"]:
            todo += [requirement for extra in wanted.extras for requirement in extras[extra]]
        else:
            assert wanted.specifier.contains(versions[canonicalize_name(wanted.name)]), wanted
            seen.add(wanted.name)
    assert len(seen) > 30


def test_each_locked_package_has_hashes() -> None:
    text = commands.REQUIREMENTS.read_text()
    blocks = [block for block in text.split("\n\n")[0].replace("\\\n", "").splitlines() if not block.startswith("#")]
    assert len(blocks) > 60
    assert all("==" in block and "--hash=sha256:" in block for block in blocks)


def test_a_part_of_the_lock_is_taken() -> None:
    with commands.locked_requirements(lambda name: name in {"cython", "pyspark"}) as file:
        text = (project_root() / file.name).read_text()
    names = [line.partition("==")[0] for line in text.splitlines() if line[0] != " "]
    assert names == ["cython", "pyspark"]
    assert commands.locked_version("pyspark") == locked()["pyspark"]


def test_a_command_that_fails_shows_its_last_lines(capsys: pytest.CaptureFixture[str]) -> None:
    script = "for number in $(seq 99); do echo line-$number; done; echo why >&2; exit 3"
    with pytest.raises(SystemExit) as caught:
        commands.run_command(["sh", "-c", script], is_quiet=True)
    assert caught.value.code == 3
    shown = capsys.readouterr().err
    assert "line-99\nwhy\n" in shown
    assert "line-1\n" not in shown
    assert "sh -c" in shown
