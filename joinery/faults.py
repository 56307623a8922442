"""The errors of joins: a factory for each situation, with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_common.errors.codes import CdcError, Code

if TYPE_CHECKING:
    from collections.abc import Sequence

    from joinery.definition import Input, Join
    from joinery.planning.errors import PlanError


def does_not_fit(join: Join, error: PlanError) -> CdcError:
    """Return CdcError(JOIN_PLAN) for a join that does not fit the schemas of its inputs."""
    return CdcError(
        Code.JOIN_PLAN,
        f'join "{join.name}" does not fit the schemas of its inputs: {error.reason}.',
        "Correct it in the joins file, or correct the schema.",
    )


def several_topics(given: Input, topics: Sequence[str]) -> CdcError:
    """Return CdcError(JOIN_INPUT) for an input that has more than one topic."""
    return CdcError(
        Code.JOIN_INPUT,
        f"{given} has several topics: {', '.join(topics)}. Joins do not follow a source to another topic yet.",
        "Disable the topics that are not written any more (cassandra-schematizer), or join another source.",
    )
