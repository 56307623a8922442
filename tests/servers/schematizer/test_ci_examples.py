"""The CI files of docs/guides/topic-files-in-ci.md: their form, and their commands with a broker and a registry."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
import yaml

from dev.local_stack.process.paths import project_root
from tests.support.schematizer.registry_process import Registry
from tests.support.schematizer.topic_commands import write_settings
from tests.support.schematizer.topic_repository import CATALOGUE, TOPIC, write_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from dev.local_stack.servers.kafka import KafkaBroker

GUIDE = project_root() / "docs" / "guides" / "topic-files-in-ci.md"
GITHUB, GITLAB = (
    yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506 - all texts: `on` is no truth value
    for text in re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
)
EXPRESSIONS = {"github.event.number": "7", "github.token": "token of the job"}
"""Values of GitHub's expressions. Those of `secrets` have none here: the broker asks for none."""
SECONDS = 120
pytestmark = [pytest.mark.servers, pytest.mark.timeout(500)]


class Notes(BaseHTTPRequestHandler):
    """GitLab's API, as far as a note of a merge request goes."""

    taken: list[tuple[str, str, str]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.taken.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(body)["body"][0]))
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Nothing on standard error."""


@pytest.fixture
def notes() -> Iterator[tuple[str, list[tuple[str, str, str]]]]:
    """The URL of the API, and its notes."""
    taken: list[tuple[str, str, str]] = []
    server = HTTPServer(("127.0.0.1", 0), type("Own", (Notes,), {"taken": taken}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/api/v4", taken
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def repository(kafka: KafkaBroker, topic_prefix: str, tmp_path: Path) -> Iterator[Path]:
    """Files of one topic, with settings of both environments."""
    root = tmp_path / "topics"
    root.mkdir()
    registry = Registry(tmp_path / "registry.db").start()
    tables = {"kafka": {"bootstrap_servers": kafka.bootstrap_servers}, "registry": {"url": registry.url}}
    for name in ("staging", "prod"):
        write_settings(root / f"{name}.toml", tables)
        write_topic(root, name, "orders")
    text = CATALOGUE.replace("{environment}.{domain}", f"{topic_prefix}.{{environment}}.{{domain}}")
    for name in ("staging", "prod"):
        text = text.replace(f"[environments.{name}]\n", f'[environments.{name}]\nsettings = "{name}.toml"\n')
    (root / "catalogue.toml").write_text(text)
    yield root
    registry.stop()


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder for PATH: the program as it is, and stand-ins that note how they were called."""
    folder = tmp_path / "bin"
    folder.mkdir()
    own = f'exec env PYTHONPATH={project_root()} {sys.executable} -m schematizer "$@"'
    for name, line in (("cassandra-schematizer", own), ("pip", 'echo "$@" >> pip.txt'), ("gh", 'echo "$@" > gh.txt')):
        (folder / name).write_text(f"#!/bin/bash\n{line}\n")
        (folder / name).chmod(0o755)
    return folder


class Host:
    """Runs the commands of a job as a code host does: each in a bash of its own that stops at an error."""

    def __init__(self, root: Path, programs: Path, variables: Mapping[str, str]) -> None:
        self.root = root
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CDC_")}
        self._environment = {**kept, "PATH": f"{programs}:{os.environ['PATH']}", **variables}

    def run(self, commands: list[str]) -> list[subprocess.CompletedProcess[str]]:
        """Run up to the first that fails."""
        done = []
        for command in commands:
            line = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command]
            environment = self._environment
            ended = subprocess.run(
                line, cwd=self.root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
            )
            done.append(ended)
            if ended.returncode:
                break
        return done

    def passes(self, commands: list[str]) -> str:
        """Run all of them, and return what they print."""
        done = self.run(commands)
        assert [ended.returncode for ended in done] == [0] * len(commands), done[-1].stderr
        return "".join(ended.stdout for ended in done)


def of_github(job: str) -> list[str]:
    """The commands of a job, with the values of expressions."""
    commands = [step["run"] for step in GITHUB["jobs"][job]["steps"] if "run" in step]
    return [re.sub(r"\$\{\{ *(.*?) *\}\}", lambda found: EXPRESSIONS[found[1]], command) for command in commands]


def of_gitlab(job: str) -> list[str]:
    commands: list[str] = [*GITLAB["default"]["before_script"], *GITLAB[job]["script"]]
    return commands


@pytest.mark.parametrize(("name", "file"), [("github-workflows", GITHUB), ("gitlab-ci", GITLAB)])
def test_the_files_have_the_hosts_form(name: str, file: dict[str, Any], tmp_path: Path) -> None:
    """By the JSON schemas that check-jsonschema has of both hosts."""
    text = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(), re.DOTALL)[file is GITLAB]
    path = tmp_path / "ci.yml"

    def checked(content: str) -> int:
        path.write_text(content)
        command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}", str(path)]
        return subprocess.run(command, capture_output=True, text=True, check=False).returncode

    assert checked(text) == 0
    assert checked(text.replace("script:", "scripts:").replace("runs-on:", "runs:")) == 1
    actionlint = shutil.which("actionlint")
    if actionlint and file is GITHUB:
        path.write_text(text)
        assert subprocess.run([actionlint, str(path)], check=False).returncode == 0


@pytest.mark.exhaustive
def test_the_commands_from_a_merge_request_to_drift(
    repository: Path, programs: Path, topic_prefix: str, notes: tuple[str, list[tuple[str, str, str]]]
) -> None:
    url, taken = notes
    host = Host(repository, programs, {})
    ids = {"CI_API_V4_URL": url, "CI_PROJECT_ID": "42", "CI_MERGE_REQUEST_IID": "7", "TOPICS_TOKEN": "token"}
    gitlab = Host(repository, programs, ids)

    # A pull request: checked, and the plan is a comment.
    host.passes(of_github("check"))
    assert json.loads((repository / "topics.sarif").read_text())["runs"][0]["results"] == []
    host.passes(of_github("plan"))
    plan = (repository / "plan.md").read_text()
    assert plan.count("### Plan for") == 2
    assert f"+ topic {topic_prefix}.staging.shop.orders" in plan
    assert (repository / "gh.txt").read_text().split() == (
        ["pr", "comment", "7", "--edit-last", "--create-if-none", "--body-file", "plan.md"]
    )
    assert "cassandra-cdc-materializer[schematizer]" in (repository / "pip.txt").read_text()

    # The merge: applied in order.
    applied = host.passes(of_github("apply"))
    assert applied.index(f"created topic {topic_prefix}.staging") < applied.index(f"created topic {topic_prefix}.prod")
    assert "prod: 0 to create, 0 to change, 0 to delete, 0 refused" in host.passes(of_github("drift"))

    # The same at GitLab, of a change.
    for name in ("staging", "prod"):
        write_topic(repository, name, "orders", TOPIC.replace("were placed", "were paid"))
    gitlab.passes(of_gitlab("check"))
    assert 'failures="0"' in (repository / "topics.xml").read_text()
    gitlab.passes(of_gitlab("plan"))
    [(path, token, body)] = taken
    assert (path, token) == ("/api/v4/projects/42/merge_requests/7/notes", "token")
    assert "doc: Orders that were placed. -> Orders that were paid." in body
    assert "changed entry" in gitlab.passes(of_gitlab("apply"))
    gitlab.passes(of_gitlab("drift"))

    # A broken file fails the check, and a dangerous one the apply: no later command runs.
    write_topic(repository, "staging", "orders", TOPIC.replace('owner = "shop"', 'owner = "shop"\npartitions = 1'))
    *_, refused = host.run(of_github("apply"))
    assert refused.returncode == 1
    assert "created" not in refused.stdout
    assert "changed" not in refused.stdout.replace("0 changed by hand", "")
    write_topic(repository, "staging", "orders", TOPIC.replace('owner = "shop"', 'owner = "none"'))
    for broken in (host.run(of_github("check")), gitlab.run(of_gitlab("check")), gitlab.run(of_gitlab("plan"))):
        assert broken[-1].returncode == 1
    assert "T201" in (repository / "topics.sarif").read_text()
    assert "T201" in (repository / "topics.xml").read_text()
    assert len(taken) == 1, "no plan of files with findings"
