"""Audits of the joins of a scene, as the command does them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError
from joinery.commands.audited import audit_joins

if TYPE_CHECKING:
    import pytest

    from tests.support.joinery.scene import Scene


def audited(scene: Scene, capsys: pytest.CaptureFixture[str]) -> tuple[CdcError | None, list[str], list[str]]:
    """The error, the lines about differences, and the others."""
    error = None
    try:
        audit_joins(scene.settings(), scene.file, [])
    except CdcError as caught:
        error = caught
    lines = capsys.readouterr().out.splitlines()
    differences = [line for line in lines if "{" in line]
    return error, differences, [line for line in lines if "{" not in line]
