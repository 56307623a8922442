"""Each code says how much of a program it stops, and the programs agree."""

from __future__ import annotations

import re

import pytest

from cdc_common.errors.codes import Code
from cdc_common.errors.reference import SCOPES, scope_table
from cdc_common.errors.scopes import Scope
from dev.local_stack.process.paths import project_root
from filler.loop import _RETRIED
from stream_runtime.driver.scope import OF_THE_JOB, TEMPORARY

_NAMED = re.compile(r"\bCode\.([A-Z_]+)\b")
_FOLDERS = {"local_stack": "dev/local_stack"}
_ENDS = {Scope.PROGRAM, Scope.START, Scope.COMMAND}


@pytest.mark.parametrize("code", list(Code), ids=lambda code: code.name)
def test_each_code_has_a_scope(code: Code) -> None:
    assert any(code in scopes for scopes in SCOPES.values())
    assert all(scopes[code] for scopes in SCOPES.values() if code in scopes)
    assert f"| {code.text} |" in scope_table()


@pytest.mark.parametrize("program", SCOPES)
def test_each_code_that_a_program_names_has_a_scope_in_it(program: str) -> None:
    files = (project_root() / _FOLDERS.get(program, program)).rglob("*.py")
    named = {Code[name] for file in files for name in _NAMED.findall(file.read_text())}
    assert named
    assert named <= SCOPES[program].keys()


def test_what_the_filler_tries_again_ends_it_only_at_its_start() -> None:
    scopes = SCOPES["filler"]
    assert {code for code in _RETRIED if Scope.WAITS in scopes[code]} == _RETRIED
    assert not {code for code, found in scopes.items() if Scope.PROGRAM in found}
    assert {code for code, found in scopes.items() if Scope.WAITS in found} - _RETRIED == {Code.FILLER_PAUSED}


def test_what_ends_the_job_is_what_its_driver_raises() -> None:
    """An error of a raw partition ends the job only if its code is one of these; all others stop the raw partition."""
    scopes = SCOPES["materializer"]
    assert all(_ENDS & set(scopes[code]) for code in OF_THE_JOB)
    assert all(Scope.WAITS in scopes[code] for code in TEMPORARY)
    of_raw_partitions = {code for code, found in scopes.items() if Scope.RAW_PARTITION in found}
    assert not of_raw_partitions & OF_THE_JOB


def test_the_publisher_ends_for_few_codes_alone() -> None:
    """An error that a table can cause leaves the table waiting, if it is known which table that is."""
    always_ends = {code for code, found in SCOPES["publisher"].items() if Scope.PROGRAM in found}
    assert always_ends - {code for code, found in SCOPES["publisher"].items() if Scope.TABLE in found} == {
        Code.CASSANDRA_AUTH,
        Code.CASSANDRA_QUERY,
        Code.CDC_RAW_MISSING,
        Code.SEGMENT_CORRUPT,
        Code.SEGMENT_UNSUPPORTED,
        Code.POSITION_FILE,
    }
