"""Every program's command line: help, flags, config, errors, signals."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from cdc_common.errors.codes import CdcError, Code
from cdc_common.program.cli import Program, reported_errors

if TYPE_CHECKING:
    from pathlib import Path

    from cdc_common.settings import Settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("CDC_"):
            monkeypatch.delenv(name)


@pytest.fixture
def seen() -> list[Settings]:
    return []


@pytest.fixture
def program(seen: list[Settings]) -> Program:
    main = Program("cassandra-example", tables=("kafka", "log"), help="An example.")

    @main.program_command("run", flags={"--prefix": "kafka.topic_prefix"})
    def run(settings: Settings) -> None:
        """Runs."""
        seen.append(settings)

    @main.program_command("fail", params=[click.Option(["--badly"], is_flag=True)])
    def fail(_settings: Settings, *, badly: bool) -> None:
        if badly:
            raise RuntimeError("no one thought of this")
        raise CdcError(Code.KAFKA_REFUSED, "The broker said no.", "Ask nicely.")

    return main


def test_options_stand_before_or_behind_the_command(program: Program, seen: list[Settings], tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text("[kafka]\nraw_partitions = 3\n")
    for arguments in (
        ["--config", "my.toml", "--set", "kafka.topic_prefix=a", "run"],
        ["run", "--config", "my.toml", "--prefix", "a"],
    ):
        assert CliRunner().invoke(program, arguments).exit_code == 0
    assert [(settings.kafka.raw_partitions, settings.kafka.topic_prefix) for settings in seen] == [(3, "a"), (3, "a")]


def test_a_command_needs_only_its_own_secrets(program: Program, seen: list[Settings], tmp_path: Path) -> None:
    main = Program("cassandra-other", tables=("cassandra", "kafka"), secrets_of=("kafka",), help="Another.")
    main.program_command("run")(seen.append)
    main.program_command("audit", secrets_of=("cassandra",))(seen.append)
    (tmp_path / "cdc.toml").write_text('[cassandra]\npassword_file = "/none"\n')
    for command, arguments, status in (
        (program, ["run"], 0),
        (main, ["run"], 0),
        (main, ["config", "check"], 0),
        (main, ["config", "show"], 0),
        (main, ["audit"], Code.CONFIG_FILE.exit_status),
    ):
        assert CliRunner().invoke(command, arguments).exit_code == status
    assert len(seen) == 2


def test_help_shows_settings_and_defaults(program: Program) -> None:
    text = " ".join(CliRunner().invoke(program, ["run", "--help"]).output.split())
    assert '--prefix STRING First part of every topic\'s name. Overrides kafka.topic_prefix. [default: "cdc"]' in text
    assert "--log-level [debug|info|warning|error]" in text
    assert "--config FILE" in text
    assert "--set TABLE.KEY=VALUE" in text


def test_a_coded_error_is_one_message_and_its_status(program: Program) -> None:
    result = CliRunner().invoke(program, ["fail"])
    assert result.exit_code == Code.KAFKA_REFUSED.exit_status
    assert result.stderr == "error CDC-021: The broker said no.\nfix: Ask nicely.\n"
    assert result.stdout == ""


def test_an_unforeseen_error_is_logged_with_its_trace(program: Program) -> None:
    result = CliRunner().invoke(program, ["fail", "--badly"])
    assert result.exit_code == 70
    event = json.loads(result.stderr)
    assert "no one thought of this" in event["exception"]
    assert "Traceback" in event["exception"]


def test_a_mistyped_set_is_a_usage_error(program: Program) -> None:
    assert CliRunner().invoke(program, ["run", "--set", "kafka"]).exit_code == 2
    assert "CDC-001" in CliRunner().invoke(program, ["run", "--set", "kafka.x=1"]).stderr


def test_config_check(program: Program, tmp_path: Path) -> None:
    (tmp_path / "cdc.toml").write_text("[kafka]\nraw_partitions = 3\n")
    result = CliRunner().invoke(program, ["config", "check"])
    assert (result.exit_code, result.output) == (0, "ok: cdc.toml, 1 values set, the others are defaults\n")
    (tmp_path / "cdc.toml").write_text("[kafka]\npartitions = 3\n")
    assert CliRunner().invoke(program, ["config", "check"]).exit_code == 2


def test_config_show_masks_secrets_and_tells_origins(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_KAFKA__SASL_PASSWORD", "geheim")
    monkeypatch.setenv("CDC_SCHEMATIZER__DATABASE_URL", "postgresql://registry:geheim@db/registry")
    monkeypatch.setenv("CDC_PUBLISHER__NODETOOL", "nodetool,-pw,geheim,--ssl")
    shown = CliRunner().invoke(program, ["config", "show", "--all"]).output
    assert 'sasl_password = "***"' in shown
    assert "# environment CDC_KAFKA__SASL_PASSWORD" in shown
    assert "postgresql://registry:***@db/registry" in shown
    assert 'nodetool = ["nodetool", "-pw", "***", "--ssl"]' in shown
    assert "geheim" not in shown
    everything = CliRunner().invoke(program, ["config", "show", "--all", "--json"]).output
    assert "geheim" not in everything
    assert json.loads(everything)["publisher.nodetool"]["value"] == ["nodetool", "-pw", "***", "--ssl"]
    values = json.loads(CliRunner().invoke(program, ["config", "show", "--json"]).output)
    assert values["kafka.sasl_password"] == {"value": "***", "origin": "environment CDC_KAFKA__SASL_PASSWORD"}
    assert values["kafka.raw_partitions"] == {"value": 8, "origin": "default"}
    assert not any(name.startswith("schematizer.") for name in values)


def test_a_program_that_is_stopped_does_not_search_for_garbage_at_its_end() -> None:
    """Containers' engines kill 10 s after they have asked, and on a busy machine half a CPU second takes as long."""
    gc.unfreeze()
    try:
        with pytest.raises(SystemExit) as ended, reported_errors(is_service=True):
            raise KeyboardInterrupt
        assert ended.value.code == 0
        assert gc.get_freeze_count() > 1000
    finally:
        gc.unfreeze()


@pytest.mark.parametrize("is_service", [True, False])
@pytest.mark.parametrize("work", ["exec('import time; time.sleep(60)')", "in_c_that_hides_it()"])
def test_sigterm_ends_the_program_cleanly_wherever_it_comes(work: str, tmp_path: Path, *, is_service: bool) -> None:
    code = textwrap.dedent(f"""
        import time
        from cdc_common.program.cli import Program
        main = Program("example", tables=(), help="An example.")

        def in_c_that_hides_it():  # as confluent_kafka's AdminClient.describe_configs
            try:
                time.sleep(60)
            except KeyboardInterrupt as interrupt:
                raise SystemError("returned a result with an exception set") from interrupt

        @main.program_command("run", is_service={is_service})
        def run(settings):
            print("ready", flush=True)
            {work}
        main(["run", "--log-format", "json"])
    """)
    (tmp_path / "example.py").write_text(code)
    command = [sys.executable, "-m", "example"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (0 if is_service else 128 + signal.SIGTERM)
    assert json.loads(errors)["event"] == "stopped on request"


@pytest.mark.parametrize("is_service", [True, False])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_program_cleanly(number: signal.Signals, *, is_service: bool) -> None:
    code = textwrap.dedent(f"""
        import time
        from cdc_common.program.cli import Program
        main = Program("example", tables=(), help="An example.")
        @main.program_command("run", is_service={is_service})
        def run(settings):
            try:
                print("ready", flush=True)
                time.sleep(60)
            finally:
                print("cleaned up", flush=True)
        main(["run", "--log-format", "json"])
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    output, errors = process.communicate(timeout=60)
    assert output == "cleaned up\n"
    assert process.returncode == (0 if is_service else 128 + number)  # what it was to do is not done
    assert json.loads(errors)["event"] == "stopped on request"


@pytest.mark.parametrize(("work", "status"), [("print('x' * 99)", 141), ("raise BrokenPipeError('of Kafka')", 70)])
def test_who_stops_reading_ends_a_command_silently(work: str, status: int) -> None:
    """`cassandra-materializer state show … | head`. Another pipe that breaks is an error as any other."""
    code = textwrap.dedent(f"""
        from cdc_common.program.cli import Program
        main = Program("example", tables=(), help="An example.")
        @main.program_command("run")
        def run(settings):
            while True:
                {work}
        main(["run", "--log-format", "json"])
    """)
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stderr is not None
    if status == 141:
        assert process.stdout.readline() == "x" * 99 + "\n"
        process.stdout.close()
    errors = process.stderr.read()
    assert process.wait(60) == status
    assert bool(errors) == (status == 70)
    process.stderr.close()
    process.stdout.close()
