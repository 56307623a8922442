"""`topics plan`, `apply` and `drift`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cdc_common.errors.codes import CdcError, Code
from schematizer.topic_files.applying.applier import Applier
from schematizer.topic_files.applying.environment import Environment
from schematizer.topic_files.applying.lease import HeldLease
from schematizer.topic_files.files.reading import Repository, read_repository
from schematizer.topic_files.planning.dangers import NAMES
from schematizer.topic_files.planning.differences import Action
from schematizer.topic_files.planning.reports import as_json, as_markdown, as_text, step_lines, summary
from schematizer.topic_files.rules.check import check_repository
from schematizer.topic_files.rules.reports import as_text as findings_as_text

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from schematizer.settings import Settings
    from schematizer.topic_files.planning.differences import Plan, Step

_DONE = {Action.CREATE: "created", Action.CHANGE: "changed", Action.DELETE: "deleted"}


def plan(settings: Settings, root: Path, environment: str, allowed: Collection[str], form: str) -> None:
    """Print what `apply` would do. CdcError TOPIC_FILES if the files break a rule."""
    _check_flags(allowed)
    repository = _checked_repository(root)
    with Environment(repository, environment, settings) as opened:
        found = opened.plan()
    if form == "json":
        click.echo(as_json(found, allowed))
    elif form == "markdown":
        click.echo(as_markdown(found, allowed), nl=False)
    else:
        for line in as_text(found, allowed):
            click.echo(line)


def apply(  # noqa: PLR0913 - the command's options
    settings: Settings, root: Path, environment: str, allowed: Collection[str], wait_seconds: float, *, dry_run: bool
) -> None:
    """Make the servers as the files say. CdcError TOPICS_REFUSED, before anything is done, if a change is dangerous and
    not allowed; TOPICS_LEASED if another apply runs.
    """
    _check_flags(allowed)
    repository = _checked_repository(root)
    with Environment(repository, environment, settings) as opened:
        if dry_run:
            _check_refused(opened.plan(), allowed)
            return
        with HeldLease(opened.registry.client, environment, wait_seconds) as lease:
            found = opened.plan()
            _check_refused(found, allowed)
            Applier(opened, lease, _report).apply(found)
    click.echo(f"applied: {summary(found, allowed)}")


def drift(settings: Settings, root: Path, environment: str, form: str) -> bool:
    """Print what someone changed by hand, and who owns it. Returns whether there is any."""
    repository = _checked_repository(root)
    with Environment(repository, environment, settings) as opened:
        found = opened.plan()
    changed = type(found)(found.environment, found.drift())
    if form == "json":
        click.echo(as_json(changed))
    else:
        for line in as_text(changed):
            click.echo(line)
    return bool(changed.steps)


def _checked_repository(root: Path) -> Repository:
    repository = read_repository(root)
    checked = check_repository(repository, datetime.now(UTC).date())
    if checked.findings:
        for line in findings_as_text(checked):
            click.echo(line, err=True)
        raise CdcError(
            Code.TOPIC_FILES,
            f"{len(checked.findings)} findings in {checked.topics} topics.",
            "Correct the files as listed, or waive a rule for a time in the topic file.",
        )
    return repository


def _check_flags(allowed: Collection[str]) -> None:
    """A typing error would leave a change refused, or allow another one."""
    for flag in allowed:
        name, equals, topic = flag.partition("=")
        if name not in NAMES or not equals or not topic:
            raise click.BadParameter(f"{flag!r} is not NAME=TOPIC with one of {', '.join(NAMES)}", param_hint="--allow")


def _check_refused(found: Plan, allowed: Collection[str]) -> None:
    for line in as_text(found, allowed):
        click.echo(line)
    refused = found.refused(allowed)
    if refused:
        names = ", ".join(sorted({danger.flag for danger in refused}))
        raise CdcError(
            Code.TOPICS_REFUSED,
            f"Nothing was applied to {found.environment}: {len(refused)} changes would lose something: {names}.",
            "Change the files, or name each change that is wanted with --allow, as the plan says.",
        )


def _report(step: Step) -> None:
    if step.action in _DONE:
        click.echo(next(step_lines(step, _DONE[step.action])))
